"""Noisy layers: exploration that the network learns. Fortunato et al. (2018), factorised Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from atari_dqn.agent.linear import QuickLinear, linear
from atari_dqn.agent.low_precision import Rounded, quick, rectified
from atari_dqn.agent.random_draws import Rng, normal
from atari_dqn.fast.cpu.products import takes_product


class NoisyLinear(QuickLinear):
    """A fully connected layer with a noise of learned size on every weight and bias.

    (W + Σ ⊙ εᵒεⁱᵀ) x + b + σ ⊙ εᵒ, where εⁱ and εᵒ have a number for each input and output. As the noise of
    a weight is a product, it is Σ applied to εⁱ ⊙ x, times εᵒ: two products, and no noisy weights are made.
    The project's own kernels make them piece by piece, where they are read, for rows that have one noise.
    Without noise the layer is its mean, which evaluations use.
    """

    def __init__(self, in_features: int, out_features: int, *, sigma: float) -> None:
        super().__init__(in_features, out_features)
        self.initial_sigma = sigma
        self._rounded_sigma = Rounded()
        self.weight_sigma = nn.Parameter(torch.empty(out_features, in_features))
        self.bias_sigma = nn.Parameter(torch.empty(out_features))
        self.noise: tuple[Tensor, Tensor] | None = None
        """εⁱ and εᵒ with a row for each equal part of the batch."""

    def forward(self, x: Float[Tensor, "B D"], *, relu: bool = False) -> Float[Tensor, "B F"]:
        """Return the layer's output under the noise there is, behind a ReLU if `relu`."""
        if self.noise is None:
            return super().forward(x, relu=relu)
        noise_in, noise_out = self.noise
        rows = noise_in.shape[0]
        if rows == 1 and quick(x) and takes_product(x, self.weight):
            with_gradients: Callable[..., Tensor] = _NoisyProduct.apply
            multiply = with_gradients if torch.is_grad_enabled() else torch.ops.atari_dqn.multiply_noisy
            y: Tensor = multiply(
                x, self.weight, self.weight_sigma, noise_in, noise_out, self.bias, self.bias_sigma, relu
            )
            return y
        mean = super().forward(x)
        seen = (x.view(rows, -1, self.in_features) * noise_in[:, None]).flatten(0, 1).to(x.dtype)
        deviation = linear(seen, self.weight_sigma, self.bias_sigma, self._rounded_sigma)
        deviation = deviation.view(rows, -1, self.out_features)
        y = mean + (deviation * noise_out[:, None]).flatten(0, 1)
        return rectified(y) if relu else y

    def hear(self, noise: tuple[Tensor, Tensor] | None) -> None:
        """Take over a noise, or none."""
        self.__dict__["noise"] = noise  # a module's own way asks of each whether it is a weight

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw means from U(±1/√fan_in); every σ is σ₀ / √fan_in. Fortunato et al. (2018), section 3.2."""
        bound = 1 / math.sqrt(self.in_features)
        for mean, sigma in ((self.weight, self.weight_sigma), (self.bias, self.bias_sigma)):
            mean.copy_(torch.empty(mean.shape).uniform_(-bound, bound, generator=generator))
            sigma.fill_(self.initial_sigma * bound)


class _NoisyProduct(torch.autograd.Function):
    """A noisy layer under one noise for all rows, by the project's own kernels, and its gradients.

    The weights are the same for every row then, so one product does, and the gradient of a deviation is that
    of its mean times its noise.
    """

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
        relu: bool,
    ) -> Tensor:
        y: Tensor = torch.ops.atari_dqn.multiply_noisy(
            x, weight, weight_sigma, noise_in, noise_out, bias, bias_sigma, relu
        )
        ctx.save_for_backward(x, weight, weight_sigma, noise_in, noise_out, y)
        ctx.relu = relu
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        needs_x = ctx.needs_input_grad[0]
        of_x, of_weight, of_sigma, of_bias, of_bias_sigma = torch.ops.atari_dqn.multiply_noisy_backward(
            gradients[0], *ctx.saved_tensors, ctx.relu, needs_x
        )
        return of_x if needs_x else None, of_weight, of_sigma, None, None, of_bias, of_bias_sigma, None


@contextmanager
def noise(layers: Iterable[NoisyLinear], rng: Rng | None, rows: int) -> Iterator[None]:
    """Give each layer fresh noise while the context lasts; none without rng."""
    noisy = list(layers) if rng is not None else []
    if rng is not None:
        draw_noise(noisy, rng, rows)
    try:
        yield
    finally:
        for layer in noisy:
            layer.hear(None)


def draw_noise(layers: Sequence[NoisyLinear], rng: Rng, rows: int) -> None:
    """Draw each layer's noise: for the whole batch with one row, else for each of its `rows` equal parts.

    Signed roots, as products of two of them have a variance of about 1. Fortunato et al. (2018).
    """
    counts = [count for layer in layers for count in (layer.in_features, layer.out_features)]
    drawn = draws(layers, rng, rows)
    parts = torch.split(drawn.abs().sqrt_().copysign_(drawn), counts, dim=1)
    for layer, noise_in, noise_out in zip(layers, parts[::2], parts[1::2], strict=True):
        layer.hear((noise_in, noise_out))


def draws(layers: Sequence[NoisyLinear], rng: Rng, rows: int) -> Float[Tensor, "R N"]:
    """Return what the noise of layers' inputs and outputs is made of, one layer after the other: N(0, 1)."""
    return normal(rng, rows, sum(layer.in_features + layer.out_features for layer in layers))
