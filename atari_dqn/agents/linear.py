"""Fully connected layers whose products go through the quicker library on a CPU.

PyTorch sends fp32 matrix products on a CPU to MKL, not to oneDNN as its convolutions. MKL is the quicker of
the two on processors of its maker, and slow on others (docs/decisions/0011).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agents.arithmetic import Rounded, has_quick_fp32_products, quick


class QuickLinear(nn.Linear):
    """`nn.Linear` in the format of its input, quicker on a CPU where this build of PyTorch can be."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self._rounded = Rounded()

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B F"]:
        """Return x Wᵀ + b."""
        return linear(x, self.weight, self.bias, self._rounded)


def linear(
    x: Float[Tensor, "B D"], weight: Float[Tensor, "F *D2"], bias: Float[Tensor, "F"], rounded: Rounded
) -> Float[Tensor, "B F"]:
    """Return x Wᵀ + b in the format of x, by the quicker way; `rounded` keeps the weight in that format.

    The weight counts times its scale, a convolution's as a row for each of its kernels, pixel after pixel.
    """
    if not quick(x) or (x.dtype == torch.float32 and has_quick_fp32_products()):
        return F.linear(x, _rows(rounded.scaled(weight)).to(x.dtype), bias.to(x.dtype))
    if not torch.is_grad_enabled():
        return _times_transposed(x, _rows(rounded.of(weight, x.dtype)), bias.to(x.dtype))
    product: Tensor = _Product.apply(x, weight, bias, rounded)  # type: ignore[no-untyped-call]
    return product


def _rows(weight: Tensor) -> Tensor:
    """Return a weight as F × D: a view, as convolutions keep theirs channels-last."""
    return weight if weight.ndim == 2 else weight.permute(0, 2, 3, 1).flatten(1)


def _unrowed(gradient: Tensor, weight: Tensor) -> Tensor:
    """Return a gradient of `_rows(weight)` as one of the weight."""
    if weight.ndim == 2:
        return gradient
    kernels, channels, height, width = weight.shape
    return gradient.view(kernels, height, width, channels).permute(0, 3, 1, 2)


class _Product(torch.autograd.Function):
    """x Wᵀ + b and its three gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, rounded: Rounded) -> Tensor:
        x = x.contiguous()  # the gradient's product of a strided x takes hundreds of times as long
        copy = _rows(rounded.of(weight, x.dtype))
        ctx.save_for_backward(x, copy, weight)
        ctx.rounded = rounded
        return _times_transposed(x, copy, bias.to(x.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        gradient = gradients[0].contiguous()
        x, copy, weight = ctx.saved_tensors
        of_x = _times_transposed(gradient, copy.t()) if ctx.needs_input_grad[0] else None
        of_rows = _times_transposed(gradient.t(), x.t())
        of_weight = ctx.rounded.gradient(_unrowed(of_rows, weight), weight)
        return of_x, of_weight, gradient.sum(dim=0, dtype=weight.dtype), None


def _times_transposed(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return a bᵀ + bias by oneDNN, which reads transposed views where they lie."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, bias, "none", [], "")
    return product
