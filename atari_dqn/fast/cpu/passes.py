"""A whole pass through a network by the project's own kernels, in one call, forward or backward.

B batch, A actions, Z numbers per action, F outputs of the hidden layer.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

from atari_dqn.fast.cpu.arguments import ChainArguments, address, kernels, unit_of
from atari_dqn.fast.cpu.library import integers, pointers

_LINE_BYTES = 64
Layer = tuple[int, int, int, int, int, int, int, int]
"""What the kernels are told of a fully connected layer.

Where its weights and biases lie, where their deviations and its noise of inputs and outputs, 0 without noise;
how many inputs and outputs it has.
"""
_NO_LAYER: Layer = (0, 0, 0, 0, 0, 0, 0, 0)
Room = list[Tensor | None]
"""Where a layer's gradients go: of its weights, biases and the deviations of both; None where none is due."""
_NO_ROOM: Room = [None] * 4


@dataclass(frozen=True, kw_only=True)
class Layers:
    """What the kernels are told of a network: a chain of convolutions, a hidden layer and a head's layers.

    Weights of the chain and the hidden layer are in one format, those of the head in fp32. What rates the
    state reads the first of the hidden units, what rates the actions the last.
    """

    chain: ChainArguments
    biases: Sequence[Tensor]
    """Of the chain."""
    dense: Sequence[Layer]
    """The hidden layer, what rates the actions and, if there is one, what rates the state."""

    def __post_init__(self) -> None:
        assert self.dense[0][-2] == math.prod(self.chain.sizes[-1][1:])

    @property
    def batch(self) -> int:
        """B."""
        return self.chain.sizes[-1][0]

    @property
    def num_units(self) -> int:
        """F."""
        return self.dense[0][-1]

    @property
    def num_outputs(self) -> int:
        """A Z."""
        return self.dense[1][-1]

    def told(self) -> ctypes.Array[ctypes.c_int64]:
        """Return the fully connected layers as the kernels read them: three."""
        return integers([number for layer in [*self.dense, _NO_LAYER][:3] for number in layer])


class Kept:
    """What a forward pass keeps for the backward one: each convolution's outputs, then the hidden units."""

    def __init__(self, layers: Layers) -> None:
        counts = [*map(math.prod, layers.chain.sizes), layers.batch * layers.num_units]
        dtype = layers.chain.weights[0].dtype
        line = _LINE_BYTES // dtype.itemsize
        *begins, end = accumulate((-(-count // line) * line for count in counts), initial=0)
        self._values = torch.empty(end, dtype=dtype)
        at = self._values.data_ptr()
        self.addresses = integers([at + begin * dtype.itemsize for begin in begins])
        self._seen = slice(begins[-2], begins[-2] + counts[-2])

    def seen(self, batch: int) -> Float[Tensor, "B D"]:
        """Return what the hidden layer saw."""
        return self._values[self._seen].view(batch, -1)


def forward(
    layers: Layers,
    *,
    draws: Float[Tensor, "1 N"] | None,
    outputs: Float[Tensor, "B A Z"],
    kept: Kept | None = None,
) -> None:
    """Write what a network puts out and, if that is asked for, what is to be `kept`.

    Of `draws` from N(0, 1) the layers' noise is made, in their place.
    """
    batch, _, numbers = outputs.shape
    assert batch == layers.batch
    kernels().forward(
        unit_of(*layers.chain.weights), *layers.chain.arguments, pointers(layers.biases), layers.told(),
        None if draws is None else draws.data_ptr(), 0 if draws is None else draws.numel(), numbers,
        None if kept is None else kept.addresses, address(outputs, batch * layers.num_outputs),
    )  # fmt: skip


def backward(
    layers: Layers,
    kept: Kept,
    upstream: Float[Tensor, "B A Z"],
    *,
    of_chain: tuple[Sequence[Tensor], Sequence[Tensor]],
    of_dense: Sequence[Room],
    of_units: Float[Tensor, "B F"],
) -> None:
    """Write a network's gradients, given what its forward pass kept.

    `of_chain` is for the convolutions' weights and biases, `of_units` for the gradient of the hidden layer's
    outputs before their ReLU. Its product with what the layer saw is the gradient of the layer's weights,
    which is not written if `of_dense` has no room for it.
    """
    batch, actions, numbers = upstream.shape
    assert (batch, actions * numbers) == (layers.batch, layers.num_outputs)
    rooms = [tensor for room in [*of_dense, _NO_ROOM][:3] for tensor in room]
    kernels().backward(
        unit_of(*layers.chain.weights, of_units), *layers.chain.arguments, layers.told(), numbers,
        kept.addresses, upstream.data_ptr(), *map(pointers, of_chain),
        integers([0 if tensor is None else tensor.data_ptr() for tensor in rooms]),
        address(of_units, batch * layers.num_units),
    )  # fmt: skip
