"""Fully connected layers whose fp32 products go through oneDNN.

PyTorch sends fp32 matrix products on a CPU to another library than its convolutions, and that one is slow on
processors not of its maker (docs/decisions/0011). bf16 products, and those of GPUs, are left as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

HAS_ONEDNN: bool = hasattr(torch.ops.mkldnn, "_linear_pointwise")


class OneDnnLinear(nn.Linear):
    """`nn.Linear`, quicker on a CPU where this build of PyTorch can be; the same function everywhere."""

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B F"]:
        """Return x Wᵀ + b."""
        return linear(x, self.weight, self.bias)


def linear(
    x: Float[Tensor, "B D"], weight: Float[Tensor, "F D"], bias: Float[Tensor, "F"]
) -> Float[Tensor, "B F"]:
    """Return x Wᵀ + b by the quicker way."""
    plain_fp32 = x.dtype == torch.float32 and not torch.is_autocast_enabled(x.device.type)
    if HAS_ONEDNN and plain_fp32 and x.device.type == "cpu":
        product: Tensor = _Product.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return product
    return F.linear(x, weight, bias)


class _Product(torch.autograd.Function):
    """x Wᵀ + b and its three gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        x = x.contiguous()  # the gradient's product of a strided x takes hundreds of times as long
        ctx.save_for_backward(x, weight)
        return _times_transposed(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        gradient = gradients[0].contiguous()
        x, weight = ctx.saved_tensors
        of_x = _times_transposed(gradient, weight.t()) if ctx.needs_input_grad[0] else None
        return of_x, _times_transposed(gradient.t(), x.t()), gradient.sum(dim=0)


def _times_transposed(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return a bᵀ + bias by oneDNN, which reads transposed views where they lie."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, bias, "none", [], "")
    return product
