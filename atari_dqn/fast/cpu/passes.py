"""The forward pass and the backward pass of a network, as one kernel call each.

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

from atari_dqn.fast.cpu.arguments import StackArguments, address, kernels, unit_of
from atari_dqn.fast.cpu.library import integers, pointers

_LINE_BYTES = 64
Layer = tuple[int, int, int, int, int, int, int, int]
"""The arguments of a fully connected layer.

The addresses of weight and bias, those of their σ and of the noise of inputs and outputs (0 without noise),
then the numbers of inputs and outputs.
"""
_NO_LAYER: Layer = (0, 0, 0, 0, 0, 0, 0, 0)
LayerGradients = list[Tensor | None]
"""The gradients to write: of weight, bias and the σ of both; None if one is not needed."""
_NO_GRADIENTS: LayerGradients = [None] * 4


@dataclass(frozen=True, kw_only=True)
class Layers:
    """The arguments of a network: a stack of convolutions, a hidden layer and the layers of the head.

    The weights of the stack and the hidden layer have one dtype, those of the head are fp32. In a dueling
    head the value layer reads the first half of the hidden units and the advantage layer the second.
    `ValueError` if the stack's outputs are not the hidden layer's inputs.
    """

    stack: StackArguments
    biases: Sequence[Tensor]
    """Of the stack."""
    dense: Sequence[Layer]
    """The hidden layer, the layer of the actions and, in a dueling head, the value layer."""

    def __post_init__(self) -> None:
        inputs, encoded = self.dense[0][-2], self.stack.sizes[-1]
        if inputs != math.prod(encoded[1:]):
            raise ValueError(f"expected frames whose encoding has {inputs} numbers, found size {encoded}")

    @property
    def batch(self) -> int:
        """B."""
        return self.stack.sizes[-1][0]

    @property
    def num_units(self) -> int:
        """F."""
        return self.dense[0][-1]

    @property
    def num_outputs(self) -> int:
        """A Z."""
        return self.dense[1][-1]

    def dense_numbers(self) -> ctypes.Array[ctypes.c_int64]:
        """Make the C array of the fully connected layers, always three."""
        return integers([number for layer in [*self.dense, _NO_LAYER][:3] for number in layer])


class Kept:
    """What a forward pass keeps for the backward pass: convolutions' outputs, hidden units.

    `values` has all of it; without it a tensor is allocated for a forward pass.
    """

    def __init__(self, layers: Layers, values: Tensor | None = None) -> None:
        counts = [*map(math.prod, layers.stack.sizes), layers.batch * layers.num_units]
        dtype = layers.stack.weights[0].dtype
        line = _LINE_BYTES // dtype.itemsize
        *begins, end = accumulate((-(-count // line) * line for count in counts), initial=0)
        self.values = torch.empty(end, dtype=dtype) if values is None else values
        at = self.values.data_ptr()
        self.addresses = integers([at + begin * dtype.itemsize for begin in begins])
        self._encoded = slice(begins[-2], begins[-2] + counts[-2])

    def encoded(self, batch: int) -> Float[Tensor, "B D"]:
        """Return the input of the hidden layer."""
        return self.values[self._encoded].view(batch, -1)


def forward(
    layers: Layers,
    *,
    draws: Float[Tensor, "1 N"] | None,
    outputs: Float[Tensor, "B A Z"],
    kept: Kept | None = None,
) -> None:
    """Compute the outputs of a network and, if given, the tensors to be `kept`.

    `draws` from N(0, 1) are overwritten by the noise of the layers.
    """
    batch, _, numbers = outputs.shape
    assert batch == layers.batch
    kernels().forward(
        unit_of(*layers.stack.weights), *layers.stack.arguments, pointers(layers.biases),
        layers.dense_numbers(),
        None if draws is None else draws.data_ptr(), 0 if draws is None else draws.numel(), numbers,
        None if kept is None else kept.addresses, address(outputs, batch * layers.num_outputs),
    )  # fmt: skip


def backward(
    layers: Layers,
    kept: Kept,
    upstream: Float[Tensor, "B A Z"],
    *,
    stack_gradients: tuple[Sequence[Tensor], Sequence[Tensor]],
    layer_gradients: Sequence[LayerGradients],
    hidden_gradient: Float[Tensor, "B F"],
) -> None:
    """Compute the gradients of a network from the kept tensors of its forward pass.

    `stack_gradients` receives the gradients of the convolutions' weights and biases, `hidden_gradient` that
    of the hidden layer's outputs before the ReLU. Its product with the layer's input is the gradient of the
    layer's weight, which is not computed if it is None in `layer_gradients`.
    """
    batch, actions, numbers = upstream.shape
    assert (batch, actions * numbers) == (layers.batch, layers.num_outputs)
    written = [tensor for gradients in [*layer_gradients, _NO_GRADIENTS][:3] for tensor in gradients]
    kernels().backward(
        unit_of(*layers.stack.weights, hidden_gradient), *layers.stack.arguments, layers.dense_numbers(),
        numbers, kept.addresses, upstream.data_ptr(), *map(pointers, stack_gradients),
        integers([0 if tensor is None else tensor.data_ptr() for tensor in written]),
        address(hidden_gradient, batch * layers.num_units),
    )  # fmt: skip
