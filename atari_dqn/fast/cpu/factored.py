"""The gradient of a fully connected layer's weight, kept as the two factors of its product.

Written out, it would be the largest tensor of an update. B batch, D inputs, F outputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.graph import increment_version

from atari_dqn.fast.cpu.arguments import address, kernels, sizes_of, unit_of
from atari_dqn.fast.cpu.library import library, numbers

MULTIPLE = 32
"""Inputs and outputs must be multiples of this."""
MOST_ROWS = 128
"""Larger minibatches gain nothing: the norm takes a product of every pair of rows."""
Rule = Literal["rmsprop", "adam"]
_RULES: tuple[Rule, ...] = ("rmsprop", "adam")


@dataclass(frozen=True, slots=True, eq=False)
class FactoredGradient:
    """The gradient upstreamᵀ x · scale of a weight; the factors have one dtype, all else is fp32."""

    weights: tuple[Tensor, ...]
    """The weight, F × D, and under noise its Σ, whose gradient is that of the weight times εᵒεⁱᵀ."""
    x: Float[Tensor, "B D"]
    upstream: Float[Tensor, "B F"]
    noise: tuple[Float[Tensor, "D"], Float[Tensor, "F"]] | None = None
    scale: float = 1.0

    def squares(self) -> float:
        """Compute the sum of squares of the gradient before it is scaled."""
        return float(kernels().squares_of_product(*self._factors()))

    def step(self, rule: Rule, averages: Sequence[tuple[Tensor, Tensor]], values: Sequence[float]) -> None:
        """Update the weights and their averages by a kernel: the same to the bit as from `.grad`."""
        rows = [(weight, *pair) for weight, pair in zip(self.weights, averages, strict=True)]
        moved = [tensor for row in rows for tensor in row]
        places = [address(tensor, self.weights[0].numel()) for tensor in moved]
        kernels().step_by_product(
            *self._factors(), self.scale, (ctypes.c_void_p * len(places))(*places), _RULES.index(rule),
            numbers(values),
        )  # fmt: skip
        increment_version(moved)

    def written(self) -> list[Tensor]:
        """Compute the full gradient of each weight in fp32."""
        gradient = self.upstream.float().T @ self.x.float() * self.scale
        if self.noise is None:
            return [gradient]
        noise_in, noise_out = self.noise
        return [gradient, gradient * torch.outer(noise_out, noise_in)]

    def _factors(self) -> tuple[int | None, ...]:
        batch, inputs, outputs = sizes_of(self.x, self.weights[0])
        noise_in, noise_out = self.noise or (None, None)
        return (
            unit_of(self.x, self.upstream), self.x.data_ptr(), address(self.upstream, batch * outputs), batch,
            inputs, outputs, None if noise_in is None else address(noise_in, inputs),
            None if noise_out is None else address(noise_out, outputs),
        )  # fmt: skip


def write_out(gradients: list[FactoredGradient]) -> list[Tensor]:
    """Add factored gradients to `.grad`, and empty the list; return their weights."""
    pairs = [pair for each in gradients for pair in zip(each.weights, each.written(), strict=True)]
    for weight, gradient in pairs:
        weight.grad = gradient if weight.grad is None else weight.grad + gradient
    gradients.clear()
    return [weight for weight, _ in pairs]


def fits_factors(weight: Tensor) -> bool:
    """Return whether there are kernels that step by the factors of the gradient of such a weight."""
    outputs, inputs = weight.shape
    has_kernels = library("portable") is not None and library("products") is not None
    return has_kernels and outputs % MULTIPLE == 0 and inputs % MULTIPLE == 0


def may_be_factored(gradient: FactoredGradient) -> bool:
    """Return whether the kernels can step by a gradient that is kept as factors."""
    return fits_factors(gradient.weights[0]) and len(gradient.x) <= MOST_ROWS
