"""Q-networks: value(head(torso(frames))).

B batch, S stacked frames, H×W one frame, D features, A actions, Z numbers per action.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agent.distributions import ScalarValue, ValueDistribution, ValueLayer
from atari_dqn.agent.heads import Head
from atari_dqn.agent.noisy import sampled_noise
from atari_dqn.agent.random_draws import Rng
from atari_dqn.agent.torsos import Torso
from atari_dqn.minibatch import Frames


class QNetwork(nn.Module):
    """Computes value distributions and q-values of stacked frames.

    The torso computes in `precision`, the head always in fp32: the q-values of two actions often differ by
    less than one percent, which bf16 does not resolve. Without an rng noisy layers use their means.
    """

    def __init__(
        self, torso: Torso, head: Head, value: ValueLayer | None = None, *, precision: str = "fp32"
    ) -> None:
        super().__init__()
        self.torso, self.head, self.value = torso, head, value or ScalarValue()
        self.dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def encoder_parts(self) -> tuple[tuple[nn.Module, bool], ...]:
        """The modules in front of the head, and whether their layers have a ReLU."""
        return ((self.torso, True),)

    @property
    def hidden_layer(self) -> nn.Module:
        """The module with the hidden layers of the head's streams, which are computed as one layer."""
        return self.torso.hidden

    def forward(self, frames: Frames, rng: Rng | None = None) -> Float[Tensor, "B A"]:
        """Compute the q-values of stacked frames, each stack under its own noise."""
        return self.q_values(frames, rng, noise_rows=len(frames))

    def q_values(
        self, frames: Frames, rng: Rng | None = None, *, noise_rows: int = 1
    ) -> Float[Tensor, "B A"]:
        """Compute the q-values of stacked frames; each of `noise_rows` equal parts has its own noise."""
        return self.distribution(frames, rng, noise_rows=noise_rows).q_values()

    def distribution(
        self, frames: Frames, rng: Rng | None = None, *, noise_rows: int = 1
    ) -> ValueDistribution:
        """Compute the value distribution of every action."""
        with sampled_noise(self, rng, noise_rows):
            distribution: ValueDistribution = self.value(self.head(self.features(frames)))
        return distribution

    def predicted_distribution(self, frames: Frames, rng: Rng) -> ValueDistribution:
        """Compute the value distributions that the loss moves towards their targets."""
        return self.distribution(frames, rng)

    def target_distribution(self, frames: Frames, rng: Rng) -> ValueDistribution:
        """Compute the value distributions of which targets are made."""
        return self.distribution(frames, rng)

    def target_distribution_and_q_values(
        self, frames: Frames, rng: Rng
    ) -> tuple[ValueDistribution, Float[Tensor, "B A"]]:
        """Compute the value distributions of which targets are made, and q-values that select an action."""
        distribution = self.target_distribution(frames, rng)
        return distribution, distribution.q_values()

    def features(self, frames: Frames) -> Float[Tensor, "B D"]:
        """Compute the torso's hidden units."""
        with self.torso_precision(frames):
            features: Tensor = self.torso(frames)
        return features.float()

    def torso_precision(self, frames: Frames) -> torch.autocast:
        """Make a context in which operations run in the torso's precision."""
        return torch.autocast(
            frames.device.type, self.dtype, enabled=self.dtype != torch.float32, cache_enabled=False
        )
