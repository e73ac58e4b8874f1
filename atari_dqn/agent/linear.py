"""Fully connected layers whose products go through the quicker library on a CPU.

PyTorch sends fp32 matrix products on a CPU to MKL, not to oneDNN as its convolutions. MKL is the quicker of
the two on processors of its maker, and slow on others (docs/decisions/0011). The project's own kernels, where
they were compiled, compute what fits them, in fp32 and in bf16 (docs/decisions/0034).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from atari_dqn.agent.low_precision import Rounded, has_quick_fp32_products, quick, rectified
from atari_dqn.fast.cpu.products import takes_product


class QuickLinear(nn.Linear):
    """`nn.Linear` in the format of its input, quicker on a CPU where this build of PyTorch can be."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self.rounded = Rounded()

    def forward(self, x: Float[Tensor, "B D"], *, relu: bool = False) -> Float[Tensor, "B F"]:
        """Return x Wᵀ + b, behind a ReLU if `relu`."""
        return linear(x, self.weight, self.bias, self.rounded, relu=relu)

    def some(self, x: Float[Tensor, "B D"], outputs: slice, *, relu: bool = False) -> Float[Tensor, "B F2"]:
        """Return some of the outputs alone, in one piece of the weights; they have no gradient here."""
        weight = self.weight
        if not quick(x) or _is_for_torch(x, weight[outputs]):
            y = F.linear(x, weight[outputs].to(x.dtype), self.bias[outputs].to(x.dtype))
            return rectified(y) if relu else y
        return _forward(x, self.rounded.of(weight, x.dtype)[outputs], self.bias[outputs], relu)


def linear(
    x: Float[Tensor, "B D"],
    weight: Float[Tensor, "F *D2"],
    bias: Float[Tensor, "F"],
    rounded: Rounded,
    *,
    relu: bool = False,
) -> Float[Tensor, "B F"]:
    """Return x Wᵀ + b in the format of x, by the quicker way; `rounded` keeps the weight in that format.

    Behind a ReLU if `relu`. The weight counts times its scale, a convolution's as a row for each of its
    kernels, pixel after pixel.
    """
    if not quick(x) or _is_for_torch(x, _rows(weight)):
        y = F.linear(x, _rows(rounded.scaled(weight)).to(x.dtype), bias.to(x.dtype))
        return rectified(y) if relu else y
    if not torch.is_grad_enabled():
        return _forward(x, _rows(rounded.of(weight, x.dtype)), bias, relu)
    product: Tensor = _Product.apply(x, weight, bias, rounded, relu)  # type: ignore[no-untyped-call]
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
    """x Wᵀ + b, a ReLU behind it or none, and its three gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, rounded: Rounded, relu: bool) -> Tensor:
        x = x.contiguous()  # the gradient's product of a strided x takes hundreds of times as long
        copy = _rows(rounded.of(weight, x.dtype))
        y = _forward(x, copy, bias, relu)
        ctx.save_for_backward(x, copy, weight, y)
        ctx.rounded, ctx.relu = rounded, relu
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None, None]:
        x, copy, weight, y = ctx.saved_tensors
        upstream = gradients[0].contiguous()
        of_x, of_rows, of_bias = _backward(upstream, x, copy, y, ctx.relu, ctx.needs_input_grad[0])
        return of_x, ctx.rounded.gradient(_unrowed(of_rows, weight), weight), of_bias, None, None


def _is_for_torch(x: Tensor, weight: Tensor) -> bool:
    """Return whether PyTorch's own product is the quickest that there is here."""
    return x.dtype == torch.float32 and has_quick_fp32_products() and not takes_product(x, weight)


def _forward(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    if takes_product(x, weight):
        y: Tensor = torch.ops.atari_dqn.multiply(x, weight, bias, relu)
        return y
    y = _times_transposed(x, weight, bias.to(x.dtype).contiguous())  # oneDNN reads a bias as one row
    return y.relu_() if relu else y


def _backward(
    upstream: Tensor, x: Tensor, weight: Tensor, y: Tensor, relu: bool, needs_x: bool
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Return the gradients of x, None unless it `needs_x`, of the weight and of the bias."""
    if takes_product(x, weight):
        gradients = torch.ops.atari_dqn.multiply_backward(upstream, x, weight, y, relu, needs_x)
        of_x, of_weight, of_bias = gradients
        return of_x if needs_x else None, of_weight, of_bias
    if relu:
        upstream = torch.ops.aten.threshold_backward(upstream, y, 0)
    of_x = _times_transposed(upstream, weight.t()) if needs_x else None
    return of_x, _times_transposed(upstream.t(), x.t()), upstream.sum(dim=0, dtype=torch.float32)


def _times_transposed(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return a bᵀ + bias by oneDNN, which reads transposed views where they lie."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, bias, "none", [], "")
    return product
