"""Noisy linear layers with factorised Gaussian noise. Fortunato et al. (2018).

B batch, D inputs, F outputs, R noise samples, one for each of R equal parts of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.random_draws import Rng, normal

Noise = tuple[Float[Tensor, "R D"], Float[Tensor, "R F"]]  # εⁱ and εᵒ


class NoisyLinear(nn.Linear):
    """A linear layer with noise on every weight and bias, whose scale is learned.

    (W + Σ ⊙ εᵒεⁱᵀ) x + b + σ ⊙ εᵒ, with one εⁱ for each input and one εᵒ for each output, is computed as
    W x + b + εᵒ ⊙ (Σ (εⁱ ⊙ x) + σ), without a noisy weight matrix. Without noise it is W x + b.
    """

    def __init__(self, in_features: int, out_features: int, *, sigma: float) -> None:
        super().__init__(in_features, out_features)
        self.initial_sigma = sigma
        self.weight_sigma = nn.Parameter(torch.empty(out_features, in_features))
        self.bias_sigma = nn.Parameter(torch.empty(out_features))
        self.noise: Noise | None = None

    def forward(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B F"]:
        """Compute the output under the current noise."""
        mean = super().forward(x)
        if self.noise is None:
            return mean
        noise_in, noise_out = self.noise
        num_parts = len(noise_in)
        noisy = (x.view(num_parts, -1, self.in_features) * noise_in[:, None]).flatten(0, 1)
        deviation = F.linear(noisy, self.weight_sigma, self.bias_sigma).view(num_parts, -1, self.out_features)
        return mean + (deviation * noise_out[:, None]).flatten(0, 1)

    def set_noise(self, noise: Noise | None) -> None:
        """Set the noise of the next forward passes; None removes it."""
        self.noise = noise

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw means from U(±1/√fan_in); set σ to σ₀ / √fan_in. Fortunato et al. (2018), section 3.2."""
        bound = 1 / math.sqrt(self.in_features)
        for mean, sigma in ((self.weight, self.weight_sigma), (self.bias, self.bias_sigma)):
            mean.copy_(torch.empty(mean.shape).uniform_(-bound, bound, generator=generator))
            sigma.fill_(self.initial_sigma * bound)


@contextmanager
def sampled_noise(network: nn.Module, rng: Rng | None, num_parts: int) -> Iterator[None]:
    """Draw noise for all noisy layers of a network, and remove it at the end; without rng draw none."""
    layers = [] if rng is None else noisy_layers(network)
    if rng is not None and layers:
        draw_noise(layers, rng, num_parts)
    try:
        yield
    finally:
        for layer in layers:
            layer.set_noise(None)


def noisy_layers(network: nn.Module) -> list[NoisyLinear]:
    """List the noisy layers of a network, in the order in which their noise is drawn."""
    return [layer for layer in network.modules() if isinstance(layer, NoisyLinear)]


def draw_noise(layers: Sequence[NoisyLinear], rng: Rng, num_parts: int) -> None:
    """Draw noise samples for each layer, one for each of `num_parts` equal parts of the batch.

    The noise is f(x) = sgn(x) √|x|, with x from N(0, 1). Fortunato et al. (2018), section 3.
    """
    drawn = normal(rng, num_parts, num_draws(layers))
    counts = [count for layer in layers for count in (layer.in_features, layer.out_features)]
    parts = torch.split(drawn.abs().sqrt_().copysign_(drawn), counts, dim=1)
    for layer, noise_in, noise_out in zip(layers, parts[::2], parts[1::2], strict=True):
        layer.set_noise((noise_in, noise_out))


def num_draws(layers: Iterable[NoisyLinear]) -> int:
    """Count the random numbers of one noise sample of these layers."""
    return sum(layer.in_features + layer.out_features for layer in layers)
