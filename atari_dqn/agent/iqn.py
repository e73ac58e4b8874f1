"""Implicit quantile networks. Dabney et al. (2018b), "Implicit quantile networks".

B batch, N fractions, D features, A actions.
"""

from __future__ import annotations

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.distributions import Quantiles, midpoints
from atari_dqn.agent.heads import Head
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import sampled_noise
from atari_dqn.agent.random_draws import Rng, uniform
from atari_dqn.agent.torsos import Torso
from atari_dqn.minibatch import Frames

EMBEDDING_COSINES = 64  # n in eq. 4


class ImplicitQuantileNetwork(QNetwork):
    """Computes the quantiles of the return at any fractions.

    The encoded frames are multiplied by an embedding of the fraction, eq. 4. Fractions are drawn from `rng`,
    or evenly spaced without it: N = `num_quantiles` for the loss, N′ = `num_target_quantiles` for targets,
    and K = `num_policy_quantiles` for q-values.
    """

    frequencies: Tensor

    def __init__(
        self,
        torso: Torso,
        head: Head,
        *,
        num_quantiles: int,
        num_target_quantiles: int,
        num_policy_quantiles: int,
        precision: str = "fp32",
    ) -> None:
        super().__init__(torso, head, precision=precision)
        self.num_quantiles = num_quantiles
        self.num_target_quantiles = num_target_quantiles
        self.num_policy_quantiles = num_policy_quantiles
        self.embedding = nn.Linear(EMBEDDING_COSINES, torso.num_encoded)
        self.register_buffer("frequencies", pi * torch.arange(EMBEDDING_COSINES), persistent=False)

    @property
    def encoder_parts(self) -> tuple[tuple[nn.Module, bool], ...]:
        """The modules in front of the head, and whether their layers have a ReLU."""
        return (self.torso, True), (self.embedding, True)

    def distribution(self, frames: Frames, rng: Rng | None = None, *, noise_rows: int = 1) -> Quantiles:
        """Compute quantiles at K fractions of each state."""
        return self._quantiles(frames, rng, self.num_policy_quantiles, noise_rows)

    def predicted_distribution(self, frames: Frames, rng: Rng) -> Quantiles:
        """Compute quantiles at N fractions of each state."""
        return self._quantiles(frames, rng, self.num_quantiles)

    def target_distribution(self, frames: Frames, rng: Rng) -> Quantiles:
        """Compute quantiles at N′ fractions of each state."""
        return self._quantiles(frames, rng, self.num_target_quantiles)

    def target_distribution_and_q_values(
        self, frames: Frames, rng: Rng
    ) -> tuple[Quantiles, Float[Tensor, "B A"]]:
        """Compute quantiles at N′ fractions and q-values at K others, in one forward pass."""
        counts = [self.num_target_quantiles, self.num_policy_quantiles]
        with sampled_noise(self, rng, 1):
            drawn = [self._fractions(frames, count, rng) for count in counts]
            both = self._quantiles_at(frames, torch.cat(drawn, dim=1))
        outputs, others = torch.split(both.outputs, counts, dim=2)
        return Quantiles(outputs, drawn[0]), others.mean(dim=2)

    def features(self, frames: Frames) -> Float[Tensor, "BN D"]:
        """Compute the hidden units at each of K evenly spaced fractions."""
        return self.features_at(frames, self._fractions(frames, self.num_policy_quantiles, None))

    def features_at(self, frames: Frames, fractions: Float[Tensor, "B N"]) -> Float[Tensor, "BN D"]:
        """Compute the hidden units at the given fractions."""
        cosines = (fractions.flatten()[:, None] * self.frequencies).cos()
        with self.torso_precision(frames):
            encoded = self.torso.encode(frames)
            embedded = F.relu(self.embedding(cosines)).view(*fractions.shape, -1)
            return self.torso.hidden_units((encoded[:, None] * embedded).flatten(0, 1)).float()

    def _quantiles(self, frames: Frames, rng: Rng | None, count: int, noise_rows: int = 1) -> Quantiles:
        with sampled_noise(self, rng, noise_rows):
            return self._quantiles_at(frames, self._fractions(frames, count, rng))

    def _quantiles_at(self, frames: Frames, fractions: Float[Tensor, "B N"]) -> Quantiles:
        outputs = self.head(self.features_at(frames, fractions))
        return Quantiles(outputs.view(*fractions.shape, -1).transpose(1, 2), fractions)

    def _fractions(self, frames: Frames, count: int, rng: Rng | None) -> Float[Tensor, "B N"]:
        batch = frames.shape[0]  # with `len`, an ONNX model would be fixed to the batch of the export
        if rng is None:
            return midpoints(count, self.frequencies.device).expand(batch, count)
        return uniform(rng, batch, count)
