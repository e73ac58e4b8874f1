"""Noisy layers computed by the project's kernels, with the parameters and names of the plain ones.

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


class FastNoisyLinear(NoisyLinear):
    """`NoisyLinear` that is one product in `dtype` where the whole batch has one noise sample.

    Its kernel computes the noisy weights block by block as it reads them.
    """

    dtype: torch.dtype

    def accelerate(self, dtype: torch.dtype) -> None:
        """Set the attribute that `NoisyLinear` does not have."""
        self.dtype = dtype

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B F"]:
        """Compute the output under the current noise."""
        if self.noise is None or len(self.noise[0]) > 1:
            return super().forward(x)
        y: Tensor = _NoisyProduct.apply(  # type: ignore[no-untyped-call]
            x.to(self.dtype), self.weight, self.weight_sigma, *self.noise, self.bias, self.bias_sigma
        )
        return y


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
        x_gradient, mean_gradient, deviation_gradient, *bias_gradients = (
            torch.ops.atari_dqn.multiply_noisy_backward(gradients[0], *ctx.saved_tensors, needs_x)
        )
        x_gradient = x_gradient if needs_x else None
        return x_gradient, mean_gradient, deviation_gradient, None, None, *bias_gradients
