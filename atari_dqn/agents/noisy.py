"""Noisy layers: exploration that the network learns. Fortunato et al. (2018), factorised Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agents.arithmetic import Rounded, rectified
from atari_dqn.agents.draws import Rng, normal
from atari_dqn.agents.linear import QuickLinear, linear


class NoisyLinear(QuickLinear):
    """A fully connected layer with a noise of learned size on every weight and bias.

    (W + Σ ⊙ εᵒεⁱᵀ) x + b + σ ⊙ εᵒ, where εⁱ and εᵒ have a number for each input and output. As the noise of
    a weight is a product, it is Σ applied to εⁱ ⊙ x, times εᵒ: two products, and no noisy weights are made.
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
        mean = super().forward(x, relu=relu and self.noise is None)
        if self.noise is None:
            return mean
        noise_in, noise_out = self.noise
        rows = len(noise_in)
        seen = (x.view(rows, -1, self.in_features) * noise_in[:, None]).flatten(0, 1).to(x.dtype)
        deviation = linear(seen, self.weight_sigma, self.bias_sigma, self._rounded_sigma)
        deviation = deviation.view(rows, -1, self.out_features)
        y = mean + (deviation * noise_out[:, None]).flatten(0, 1)
        return rectified(y) if relu else y

    def draw(self, rng: Rng, rows: int) -> None:
        """Draw noise: for the whole batch with one row, else for each of `rows` equal parts of it."""
        drawn = normal(rng, rows, self.in_features + self.out_features)
        scaled = drawn.sign() * drawn.abs().sqrt()
        self.noise = (scaled[:, : self.in_features], scaled[:, self.in_features :])

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw means from U(±1/√fan_in); every σ is σ₀ / √fan_in. Fortunato et al. (2018), section 3.2."""
        bound = 1 / math.sqrt(self.in_features)
        for mean, sigma in ((self.weight, self.weight_sigma), (self.bias, self.bias_sigma)):
            mean.copy_(torch.empty(mean.shape).uniform_(-bound, bound, generator=generator))
            sigma.fill_(self.initial_sigma * bound)


@contextmanager
def noise(layers: Iterable[NoisyLinear], rng: Rng | None, rows: int) -> Iterator[None]:
    """Give each layer fresh noise while the context lasts; none without rng."""
    drawn = list(layers) if rng is not None else []
    for layer in drawn:
        assert rng is not None
        layer.draw(rng, rows)
    try:
        yield
    finally:
        for layer in drawn:
            layer.noise = None
