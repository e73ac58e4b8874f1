"""Noisy layers computed by the project's kernels, with the parameters, names and results of the plain ones.

`structure.apply_plan` changes the class of a finished layer.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from atari_dqn.agent.noisy import NoisyLinear
from atari_dqn.fast.cpu import products as _operators  # noqa: F401  registers torch.ops.atari_dqn
from atari_dqn.fast.low_precision import LowPrecisionWeight


class FastNoisyLinear(NoisyLinear):
    """`NoisyLinear` that computes in `dtype`.

    If the whole batch has one noise sample, the layer is one product, whose kernel computes the noisy weights
    block by block as it reads them.
    """

    dtype: torch.dtype
    cache: LowPrecisionWeight
    sigma_cache: LowPrecisionWeight

    def accelerate(self, dtype: torch.dtype) -> None:
        """Set the attributes that `NoisyLinear` does not have."""
        self.dtype, self.cache, self.sigma_cache = dtype, LowPrecisionWeight(), LowPrecisionWeight()

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B F"]:
        """Compute the output under the current noise."""
        x = x.to(self.dtype)
        if self.noise is None:
            return product(x, self.weight, self.bias, self.cache)
        noise_in, noise_out = self.noise
        rows = len(noise_in)
        if rows == 1:
            y: Tensor = _NoisyProduct.apply(  # type: ignore[no-untyped-call]
                x, self.weight, self.weight_sigma, noise_in, noise_out, self.bias, self.bias_sigma
            )
            return y
        mean = product(x, self.weight, self.bias, self.cache)
        noisy = (x.view(rows, -1, self.in_features) * noise_in[:, None]).flatten(0, 1).to(self.dtype)
        deviation = product(noisy, self.weight_sigma, self.bias_sigma, self.sigma_cache)
        deviation = deviation.view(rows, -1, self.out_features)
        return mean + (deviation * noise_out[:, None]).flatten(0, 1)


def product(x: Tensor, weight: Tensor, bias: Tensor, cache: LowPrecisionWeight) -> Tensor:
    """Compute x Wᵀ + b in the format of x; `cache` converts the weight to it."""
    if not torch.is_grad_enabled():
        y: Tensor = torch.ops.atari_dqn.multiply(x, cache.of(weight, x.dtype), bias)
        return y
    with_gradients: Tensor = _Product.apply(x, weight, bias, cache)  # type: ignore[no-untyped-call]
    return with_gradients


class _Product(torch.autograd.Function):
    """x Wᵀ + b and its three gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, cache: LowPrecisionWeight) -> Tensor:
        x, copy = x.contiguous(), cache.of(weight, x.dtype)
        y: Tensor = torch.ops.atari_dqn.multiply(x, copy, bias)
        ctx.save_for_backward(x, copy, weight)
        ctx.cache = cache
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, copy, weight = ctx.saved_tensors
        needs_x = ctx.needs_input_grad[0]
        of_x, of_copy, of_bias = torch.ops.atari_dqn.multiply_backward(
            gradients[0].contiguous(), x, copy, needs_x
        )
        return of_x if needs_x else None, ctx.cache.gradient(of_copy, weight), of_bias, None


class _NoisyProduct(torch.autograd.Function):
    """A noisy layer under one noise sample; the gradient of Σ is that of W times the noise."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        weight_sigma: Tensor,
        noise_in: Tensor,
        noise_out: Tensor,
        bias: Tensor,
        bias_sigma: Tensor,
    ) -> Tensor:
        y: Tensor = torch.ops.atari_dqn.multiply_noisy(
            x, weight, weight_sigma, noise_in, noise_out, bias, bias_sigma
        )
        ctx.save_for_backward(x, weight, weight_sigma, noise_in, noise_out)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        needs_x = ctx.needs_input_grad[0]
        of_x, of_weight, of_sigma, of_bias, of_bias_sigma = torch.ops.atari_dqn.multiply_noisy_backward(
            gradients[0], *ctx.saved_tensors, needs_x
        )
        return of_x if needs_x else None, of_weight, of_sigma, None, None, of_bias, of_bias_sigma
