"""A whole forward pass by the project's own kernels, in one call.

B batch, A actions, Z numbers per action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from atari_dqn.kernels.arguments import ChainArguments, address, kernels, unit_of
from atari_dqn.kernels.library import integers, pointers

Layer = tuple[int, int, int, int, int, int, int, int]
"""What the kernels are told of a fully connected layer.

Where its weights and biases lie, where their deviations and its noise of inputs and outputs, 0 without noise;
how many inputs and outputs it has.
"""
_NO_LAYER: Layer = (0, 0, 0, 0, 0, 0, 0, 0)


def forward(
    chain: ChainArguments,
    biases: Sequence[Tensor],
    *,
    hidden: Layer,
    actions: Layer,
    state: Layer | None,
    draws: Float[Tensor, "1 N"] | None,
    outputs: Float[Tensor, "B A Z"],
) -> None:
    """Write what a chain of convolutions, a hidden layer and a head's layers put out.

    Weights of the chain and the hidden layer are in one format, those of the head in fp32. What rates the
    state reads the first of the hidden units, what rates the actions the last. Of `draws` from N(0, 1) the
    layers' noise is made, in their place.
    """
    batch, _, numbers = outputs.shape
    assert (batch, hidden[-2]) == (chain.sizes[-1][0], math.prod(chain.sizes[-1][1:]))
    kernels().forward(
        unit_of(*chain.weights), *chain.arguments, pointers(biases),
        integers([*hidden, *actions, *(state or _NO_LAYER)]),
        None if draws is None else draws.data_ptr(), 0 if draws is None else draws.numel(),
        numbers, address(outputs, batch * actions[-1]),
    )  # fmt: skip
