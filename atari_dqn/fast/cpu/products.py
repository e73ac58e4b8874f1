"""Stacks of convolutions and matrix products by the project's kernels, as PyTorch operators.

A training calls those of stacks and of noisy layers; `multiply` is there to check and time the kernels that
a fused pass calls. They compute in fp32 or bf16; gradients of weights and biases are always fp32. Sums over a
minibatch have the same order with any number of threads.

B minibatch, C channels, H×W pixels, D inputs, F filters or outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from atari_dqn.fast.cpu.arguments import (
    StackArguments,
    address,
    empty_images,
    kernels,
    noisy_addresses,
    row,
    sizes_of,
    unit_of,
)  # fmt: skip
from atari_dqn.fast.cpu.library import pointers, size_divisor
from atari_dqn.fast.cpu.shapes import Size

_NO_RELU = 0


def fits_product(weight: Size, dtype: torch.dtype) -> bool:
    """Return whether the kernels support a product with a weight of this size in `dtype`."""
    outputs, inputs = weight
    any_outputs = dtype is torch.float32 and outputs >= size_divisor()
    return (any_outputs or outputs % size_divisor() == 0) and inputs % size_divisor() == 0


def _fits_convolution(weight: Size) -> bool:
    """Return whether the kernels support a convolution with a weight of this size in a stack."""
    filters, channels, _, wide = weight
    return filters % size_divisor() == 0 and channels * wide % size_divisor() == 0 and channels % 2 == 0


def fits_stack(weights: Sequence[Size], dtype: torch.dtype) -> bool:
    """Return whether the kernels support a stack of convolutions with weights of these sizes in `dtype`.

    In fp32 a row of the first layer's kernels may have any length.
    """
    first, *others = weights
    fits_first = dtype is torch.float32 and first[0] % size_divisor() == 0
    return (fits_first or _fits_convolution(first)) and all(map(_fits_convolution, others))


def _stack_of(pixels: Tensor, weights: list[Tensor], strides: list[int], zeros: list[int]) -> StackArguments:
    """Collect the arguments of a stack of convolutions, which the kernels must support."""
    assert fits_stack([weight.shape for weight in weights], weights[0].dtype)
    return StackArguments(pixels, weights, strides, zeros)


def _sizes_of(x: Tensor, weight: Tensor) -> tuple[int, int, int]:
    """Return rows, inputs and outputs of a product, which the kernels must support."""
    sizes = sizes_of(x, weight)
    assert fits_product(weight.shape, x.dtype)
    return sizes


def _encode(
    pixels: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    strides: list[int],
    zeros: list[int],
    all_layers: bool,
) -> list[Tensor]:
    """Compute the output of a stack of convolutions with ReLUs of bytes or fp32: B × F, channel by channel.

    With `all_layers` the outputs of all layers but the last follow. `zeros` has the padding of each layer:
    four numbers.
    """
    stack = _stack_of(pixels, weights, strides, zeros)
    outputs = [empty_images(size, weights[0]) for size in stack.sizes[:-1]] if all_layers else []
    encoded = weights[0].new_empty(pixels.shape[0], math.prod(stack.sizes[-1][1:]))
    rows = [row(bias) for bias in biases]
    assert [bias.shape for bias in rows] == [weight.shape[:1] for weight in weights]
    kernels().encode(
        unit_of(*weights), *stack.arguments, pointers(rows), pointers(outputs) if all_layers else None,
        encoded.data_ptr(),
    )  # fmt: skip
    return [encoded, *outputs]


def _encode_backward(
    upstream: Tensor,
    pixels: Tensor,
    weights: list[Tensor],
    outputs: list[Tensor],
    strides: list[int],
    zeros: list[int],
) -> list[Tensor]:
    """Compute the gradients of the weights, then of the biases; `outputs` are those of `encode`."""
    stack = _stack_of(pixels, weights, strides, zeros)
    encoded, *kept = outputs
    upstream = upstream.contiguous()
    weight_gradients = [torch.empty_like(weight, dtype=torch.float32) for weight in stack.weights]
    bias_gradients = [torch.empty(len(weight)) for weight in weights]
    assert [output.shape for output in kept] == stack.sizes[:-1]
    count = math.prod(stack.sizes[-1])
    kernels().encode_backward(
        unit_of(*weights, *outputs, upstream), *stack.arguments, pointers(kept), address(encoded, count),
        address(upstream, count), pointers(weight_gradients), pointers(bias_gradients),
    )  # fmt: skip
    return [*weight_gradients, *bias_gradients]


def _multiply(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute x wᵀ + b."""
    x, weight, bias = x.contiguous(), weight.contiguous(), row(bias)
    rows, inputs, outputs = _sizes_of(x, weight)
    y = x.new_empty(rows, outputs)
    kernels().multiply(
        unit_of(x, weight), x.data_ptr(), weight.data_ptr(), address(bias, outputs), rows, inputs, outputs,
        _NO_RELU, y.data_ptr(),
    )  # fmt: skip
    return y


def _multiply_backward(
    upstream: Tensor, x: Tensor, weight: Tensor, needs_x: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of x, empty unless `needs_x`, of the weight and of the bias."""
    upstream, x, weight = upstream.contiguous(), x.contiguous(), weight.contiguous()
    x_gradient = torch.empty_like(x) if needs_x else x.new_empty(0)
    rows, inputs, outputs = _sizes_of(x, weight)
    weight_gradient, bias_gradient = torch.empty_like(weight, dtype=torch.float32), torch.empty(outputs)
    kernels().multiply_backward(
        unit_of(x, weight, upstream), x.data_ptr(), weight.data_ptr(),
        address(upstream, rows * outputs), rows, inputs, outputs,
        weight_gradient.data_ptr(), bias_gradient.data_ptr(), x_gradient.data_ptr() if needs_x else None,
    )  # fmt: skip
    return x_gradient, weight_gradient, bias_gradient


def _multiply_noisy(
    x: Tensor,
    mean: Tensor,
    deviation: Tensor,
    noise_in: Tensor,
    noise_out: Tensor,
    bias: Tensor,
    bias_deviation: Tensor,
) -> Tensor:
    """Compute x (W + Σ ⊙ εᵒεⁱᵀ)ᵀ + b + σ ⊙ εᵒ; all but x is fp32."""
    x, (rows, inputs, outputs) = x.contiguous(), _sizes_of(x, mean)
    bias, bias_deviation = row(bias), row(bias_deviation)
    y = x.new_empty(rows, outputs)
    kernels().multiply_noisy(
        unit_of(x), x.data_ptr(), *noisy_addresses(mean, deviation, noise_in, noise_out),
        address(bias, outputs), address(bias_deviation, outputs), rows, inputs, outputs,
        _NO_RELU, y.data_ptr(),
    )  # fmt: skip
    return y


def _multiply_noisy_backward(
    upstream: Tensor,
    x: Tensor,
    mean: Tensor,
    deviation: Tensor,
    noise_in: Tensor,
    noise_out: Tensor,
    needs_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Compute the gradients of x, empty unless `needs_x`, of W, Σ, b and σ."""
    upstream, x = upstream.contiguous(), x.contiguous()
    rows, inputs, outputs = _sizes_of(x, mean)
    x_gradient = torch.empty_like(x) if needs_x else x.new_empty(0)
    mean_gradient, deviation_gradient = torch.empty_like(mean), torch.empty_like(mean)
    bias_gradient, bias_deviation_gradient = torch.empty(outputs), torch.empty(outputs)
    kernels().multiply_noisy_backward(
        unit_of(x, upstream), x.data_ptr(), *noisy_addresses(mean, deviation, noise_in, noise_out),
        address(upstream, rows * outputs), rows, inputs, outputs,
        mean_gradient.data_ptr(), deviation_gradient.data_ptr(), bias_gradient.data_ptr(),
        bias_deviation_gradient.data_ptr(), x_gradient.data_ptr() if needs_x else None,
    )  # fmt: skip
    return x_gradient, mean_gradient, deviation_gradient, bias_gradient, bias_deviation_gradient


_THREE = "(Tensor, Tensor, Tensor)"
_LAYER = "Tensor x, Tensor weight"
_NOISY_LAYER = f"{_LAYER}, Tensor deviation, Tensor noise_in, Tensor noise_out"
_WINDOWS = "int[] strides, int[] zeros"
_OPERATORS: dict[str, Callable[..., Any]] = {
    f"encode(Tensor pixels, Tensor[] weights, Tensor[] biases, {_WINDOWS}, bool all_layers)"
    " -> Tensor[]": _encode,
    f"encode_backward(Tensor upstream, Tensor pixels, Tensor[] weights, Tensor[] outputs, {_WINDOWS})"
    " -> Tensor[]": _encode_backward,
    f"multiply({_LAYER}, Tensor bias) -> Tensor": _multiply,
    f"multiply_backward(Tensor upstream, {_LAYER}, bool needs_x) -> {_THREE}": _multiply_backward,
    f"multiply_noisy({_NOISY_LAYER}, Tensor bias, Tensor bias_deviation) -> Tensor": _multiply_noisy,
    f"multiply_noisy_backward(Tensor upstream, {_NOISY_LAYER}, bool needs_x)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)": _multiply_noisy_backward,
}
_namespace: Any = torch.library.Library("atari_dqn", "DEF")  # type: ignore[no-untyped-call]
for _schema, _function in _OPERATORS.items():
    _namespace.define(_schema)
    _namespace.impl(_schema.partition("(")[0], _function, "CPU")
