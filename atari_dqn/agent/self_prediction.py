"""Self-predictive representations, SPR. Schwarzer et al. (2021).

    s_0 ──encode──▶ z_0 ──h(·, a_0)──▶ ẑ_1 ──h(·, a_1)──▶ ẑ_2 …    h: transition model
                                        │                  │
    online network                    q(g(ẑ_1))          q(g(ẑ_2))    g: hidden layer, q: prediction
                                        ≈                  ≈
    target network, of s_1 and s_2    g⁻(z⁻_1)           g⁻(z⁻_2)

B batch, K predicted steps, S stacked frames, C channels, H×W frames or latents, F = C·H·W numbers of
a latent, D features, A actions. ⁻ marks the target network.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.augmentation import RandomShifts
from atari_dqn.agent.distributions import ValueLayer
from atari_dqn.agent.heads import Head
from atari_dqn.agent.losses import LossFn, LossOutput
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.agent.torsos import Torso
from atari_dqn.minibatch import Frames, FutureBatch

_RENORMALIZING_EPSILON = 1e-5


def renormalized(z: Float[Tensor, "B F"]) -> Float[Tensor, "B F"]:
    """Scale each row to [0, 1] by its smallest and largest number. Schrittwieser et al. (2020), app. G."""
    low, high = z.amin(dim=1, keepdim=True), z.amax(dim=1, keepdim=True)
    return (z - low) / (high - low + _RENORMALIZING_EPSILON)


class TransitionModel(nn.Module):
    """Computes the next latent from a latent and an action: two convolutions, each with a ReLU.

    The one-hot action has a plane of the latent's size for each action. Schwarzer et al. (2021), section 2.3.
    """

    def __init__(self, channels: int, num_actions: int) -> None:
        super().__init__()
        self.channels, self.num_actions = channels, num_actions
        self.first = nn.Conv2d(channels + num_actions, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, z: Float[Tensor, "B F"], action: Int64[Tensor, "B"]) -> Float[Tensor, "B F"]:
        """Compute the next latent, renormalized."""
        side = isqrt(z.shape[1] // self.channels)
        planes = F.one_hot(action, self.num_actions).to(z.dtype)[:, :, None, None].expand(-1, -1, side, side)
        x = torch.cat([z.view(-1, self.channels, side, side), planes], dim=1)
        return renormalized(F.relu(self.second(F.relu(self.first(x)))).flatten(1))


class SelfPredictiveNetwork(QNetwork):
    """A Q-network with a transition model and a prediction, on latents that are renormalized.

    The projection g is the hidden layer that the head uses too, before its ReLU and without noise.
    """

    def __init__(
        self,
        torso: Torso,
        head: Head,
        value: ValueLayer,
        *,
        num_actions: int,
        precision: str = "fp32",
    ) -> None:
        super().__init__(torso, head, value, precision=precision)
        channels = [part for part in torso.modules() if isinstance(part, nn.Conv2d)][-1].out_channels
        self.transition = TransitionModel(channels, num_actions)
        self.prediction = nn.Linear(torso.num_features, torso.num_features)
        self._known_latent: tuple[Frames, Float[Tensor, "B F"]] | None = None
        # again, for the modules added here
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def encoder_parts(self) -> tuple[tuple[nn.Module, bool], ...]:
        """The modules in front of the head and of the loss, and whether their layers have a ReLU."""
        return (self.torso, True), (self.transition, True), (self.prediction, False)

    def features(self, frames: Frames) -> Float[Tensor, "B D"]:
        """Compute the hidden units of stacked frames."""
        z = self.latent(frames)
        with self.torso_precision(frames):
            features = self.torso.hidden_units(z)
        return features.float()

    @contextmanager
    def encoding_once(self, frames: Frames) -> Iterator[None]:
        """Encode frames now: inside the context, `latent` of the same tensor returns the same latents."""
        self._known_latent = frames, self.latent(frames)
        try:
            yield
        finally:
            self._known_latent = None

    def latent(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Encode stacked frames, and renormalize."""
        if self._known_latent is not None and frames is self._known_latent[0]:
            return self._known_latent[1]
        with self.torso_precision(frames):
            encoded = self.torso.encode(frames)
        return renormalized(encoded.float())

    def projected(self, z: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        """Compute g of latents."""
        features: Tensor = self.torso.hidden(z)
        return features

    def predicted(self, frames: Frames, actions: Int64[Tensor, "B K"]) -> Float[Tensor, "B K D"]:
        """Predict the projections of the next K latents from stacked frames and K actions."""
        z, latents = self.latent(frames), []
        for action in actions.unbind(dim=1):
            z = self.transition(z, action)
            latents.append(z)
        predicted: Tensor = self.prediction(self.projected(torch.cat(latents)))
        # the rows are sorted by step, and then by transition
        return predicted.view(actions.shape[1], len(actions), -1).transpose(0, 1)


def cosine_loss(
    predicted: Float[Tensor, "B K D"], target: Float[Tensor, "B K D"], follows: Bool[Tensor, "B K"]
) -> Float[Tensor, "B"]:
    """Compute Σₖ 1 − cos(predictedₖ, targetₖ) over the steps that follow in the episode.

    Schwarzer et al. (2021), eq. 2, which leaves out the constant.
    """
    similarity = F.cosine_similarity(predicted, target, dim=2)
    return (1 - similarity).masked_fill(~follows, 0.0).sum(dim=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPredictionLoss:
    """A TD loss plus λ times the cosine loss of K predicted steps, both times the importance weight.

    Priorities and metrics are those of the TD loss. Schwarzer et al. (2021), eq. 3.
    """

    td_loss: LossFn
    weight: float
    """λ."""

    def __call__(self, batch: FutureBatch, online: Any, target: Any, rng: Rng, /) -> LossOutput:
        """Compute the loss; `online` and `target` are each a `SelfPredictiveNetwork`."""
        with torch.no_grad():
            projected = target.projected(target.latent(batch.future.flatten(0, 1)))
        with online.encoding_once(batch.s_tm1):  # for both losses: encoding is most of BBF's update
            output = self.td_loss(batch, online, target, rng)
            predicted = online.predicted(batch.s_tm1, batch.actions)
        loss = cosine_loss(predicted, projected.view(predicted.shape), batch.follows)
        return replace(output, loss=output.loss + self.weight * batch.weight * loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureShifts(RandomShifts):
    """Augments the stacks of the next K steps too, each with a shift and a brightness of its own."""

    def __call__(self, batch: FutureBatch, generator: torch.Generator) -> FutureBatch:  # type: ignore[override]
        """Augment every state, those of the next steps first."""
        future = self._augmented(batch.future.flatten(0, 1), generator).view(batch.future.shape)
        # super() without arguments fails in a dataclass with slots
        return RandomShifts.__call__(self, replace(batch, future=future), generator)
