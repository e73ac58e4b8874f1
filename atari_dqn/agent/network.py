"""Networks from stacked frames to what is predicted of every action: a torso that sees, a head that rates.

B batch, S stacked frames, H×W one frame, D features, A actions, Z numbers per action, N fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agent.distributions import Output, Prediction, Quantiles, ValueOutput, midpoints
from atari_dqn.agent.fused_network import OneCall
from atari_dqn.agent.heads import DuelingHead, Head
from atari_dqn.agent.init import INITIALIZERS, RELU_GAIN
from atari_dqn.agent.linear import QuickLinear
from atari_dqn.agent.noisy import NoisyLinear, draws, noise
from atari_dqn.agent.random_draws import Rng, uniform
from atari_dqn.agent.structure import Anatomy, keeps, watched
from atari_dqn.agent.torsos import Torso
from atari_dqn.fast.cpu.factored import FactoredGradient
from atari_dqn.machine.sizes import EMBEDDING_COSINES
from atari_dqn.minibatch import Frames, Pixels

Use = Literal["loss", "target", "rating", "policy"]
"""What a prediction is for: to be corrected; to choose and rate an action; to rate one; to choose one.

It decides how many fractions are drawn, where fractions are drawn, and nothing else.
"""


class QNetwork(nn.Module):
    """Frames in, predictions and action values out. Frames become floats in its torso and nowhere else.

    That runs in `precision`; the head always in fp32, because gaps between actions are often under one
    percent, less than bf16 resolves. Convolutions run fastest channels-last.

    What is random in a network draws from the rng that a call is given. A call without any has the noisy
    layers' means and evenly spread fractions, as evaluations do.
    """

    def __init__(self, torso: Torso, head: Head, *, precision: str, output: Output | None = None) -> None:
        super().__init__()
        self.torso, self.head = torso, head
        self.output = output or ValueOutput()
        self.dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._look()

    @property
    def hidden_parts(self) -> tuple[nn.Module, ...]:
        """What comes before the head."""
        return (self.torso,)

    def arrange(self, pixels: Pixels, *, compiled: bool = False) -> Pixels:
        """Return pixels in the order in memory that the torso sees fastest; arranged ones as they are."""
        as_they_are = pixels.ndim != 4 or (not compiled and self.torso.takes_bytes(pixels, self.dtype))
        return pixels if as_they_are else self.torso.arrange(pixels)

    def forward(self, pixels: Pixels, rng: Rng | None = None) -> Float[Tensor, "B A"]:
        """Return the action values of stacked frames; each of them has a noise of its own."""
        return self.predict(pixels, rng, noise_rows=len(pixels)).q_values()

    def preferences(
        self, pixels: Pixels, rng: Rng | None = None, *, noise_rows: int = 1
    ) -> Float[Tensor, "B A"]:
        """Return numbers that order the actions as `predict` does, without gradients.

        Where a dueling head has parts of their own for the state and the actions, these are the advantages:
        what a state is worth is the same for each action, and half of the hidden layer is not asked.
        """
        self._look_again()
        if not self._rates_actions_apart or watched(self._passed_by):
            return self.predict(pixels, rng, noise_rows=noise_rows).q_values()
        assert isinstance(self.head, DuelingHead)
        if self._in_one_call is not None and self._in_one_call.takes(pixels):
            return self._in_one_call.advantages(pixels).squeeze(2)
        seen = self.torso.see(pixels, self.dtype)
        units = self.torso.think_partly(seen, self.head.action_units)
        advantages: Tensor = self.head.advantage(units.float())
        return advantages

    def predict(
        self,
        pixels: Pixels,
        rng: Rng | None = None,
        *,
        use: Use = "policy",
        noise_rows: int = 1,
        factored: list[FactoredGradient] | None = None,
    ) -> Prediction:
        """Return what is predicted of every action; each of `noise_rows` equal parts has its own noise.

        The backward pass may leave gradients of weights in `factored`, which these weights then lack.
        """
        self._look_again()
        has_one_noise = noise_rows == 1 or rng is None or not self._noisy
        if has_one_noise and self._in_one_call is not None and self._in_one_call.takes(pixels):
            drawn = draws(self._noisy, rng, 1) if self._noisy and rng is not None else None
            whole: Prediction = self.output(self._in_one_call.outputs(pixels, drawn, factored))
            return whole
        if not self._noisy:
            return self._predict(pixels, rng, use)
        with noise(self._noisy, rng, noise_rows):
            return self._predict(pixels, rng, use)

    def features(self, pixels: Pixels) -> Float[Tensor, "B D"]:
        """Return what the torso makes of stacked frames: its hidden units, after their ReLU."""
        features: Tensor = self.torso(pixels, self.dtype)
        return features.float()

    def _look(self) -> None:
        """Find out what can be computed together of the modules that there are."""
        self._anatomy = Anatomy(self)
        self._noisy = tuple(layer for layer in self.modules() if isinstance(layer, NoisyLinear))
        torso, head = self.torso, self.head
        self._passed_by = [torso, torso.hidden, *head.modules()]
        computes_so = keeps(self, QNetwork, "features", "_predict")
        self._in_one_call = OneCall.of(torso, head, self.dtype) if computes_so else None
        self._rates_actions_apart = (
            computes_so
            and not self._noisy
            and keeps(torso, Torso, "think", "think_partly", "forward")
            and (type(torso.hidden), type(head)) == (QuickLinear, DuelingHead)
            and isinstance(self.output, ValueOutput)
        )

    def _look_again(self) -> None:
        """Look if there are other modules than when they were looked at."""
        if not torch.compiler.is_compiling() and not self._anatomy.holds():
            self._look()

    def _predict(self, pixels: Pixels, rng: Rng | None, use: Use) -> Prediction:
        del rng, use
        prediction: Prediction = self.output(self.head(self.features(pixels)))
        return prediction


@dataclass(frozen=True, kw_only=True)
class FractionCounts:
    """How many fractions an implicit quantile network is asked for. Dabney et al. (2018b), section 3.2."""

    loss: int
    """N, of the prediction that is corrected."""
    target: int
    """N′, of the target."""
    policy: int
    """K, for choosing an action."""

    def of(self, use: Use) -> tuple[int, int]:
        """Return how many fractions predict, and how many more choose."""
        return {
            "loss": (self.loss, 0),
            "target": (self.target, self.policy),
            "rating": (self.target, 0),
            "policy": (self.policy, 0),
        }[use]


class ImplicitQuantileNetwork(QNetwork):
    """Predicts the return's quantile at any fraction. Dabney et al. (2018b), "Implicit quantile networks".

    What the convolutions see is multiplied by an embedding of the fraction, eq. 4; the rest is as ever.
    """

    frequencies: Tensor

    def __init__(self, torso: Torso, head: Head, *, precision: str, counts: FractionCounts) -> None:
        super().__init__(torso, head, precision=precision)
        self.counts = counts
        self.embedding = QuickLinear(EMBEDDING_COSINES, torso.num_seen)
        self.register_buffer("frequencies", pi * torch.arange(EMBEDDING_COSINES), persistent=False)

    @property
    def hidden_parts(self) -> tuple[nn.Module, ...]:
        """What comes before the head."""
        return (self.torso, self.embedding)

    def features(self, pixels: Pixels) -> Float[Tensor, "BN D"]:
        """Return the hidden units at each of the fractions that choose an action."""
        return self._features(pixels, self._fractions(len(pixels), self.counts.policy, None))

    def _predict(self, pixels: Pixels, rng: Rng | None, use: Use) -> Quantiles:
        predicting, choosing = self.counts.of(use)
        fractions = torch.cat(
            [self._fractions(len(pixels), count, rng) for count in (predicting, choosing) if count],
            dim=1,
        )
        quantiles = self.head(self._features(pixels, fractions)).view(*fractions.shape, -1).transpose(1, 2)
        outputs = quantiles[..., :predicting]
        return Quantiles(
            outputs, fractions[:, :predicting], quantiles[..., predicting:] if choosing else outputs
        )

    def _features(self, pixels: Pixels, fractions: Float[Tensor, "B N"]) -> Float[Tensor, "BN D"]:
        seen = self.torso.see(pixels, self.dtype)
        waves = (fractions.flatten()[:, None] * self.frequencies).cos().to(self.dtype)
        embedded = self.embedding(waves, relu=True).view(*fractions.shape, -1)
        return self.torso.think((seen[:, None] * embedded).flatten(0, 1)).float()

    def _fractions(self, batch: int, count: int, rng: Rng | None) -> Float[Tensor, "B N"]:
        device = self.frequencies.device
        if rng is None:
            return midpoints(count).to(device).expand(batch, count)
        return uniform(rng, batch, count)


@torch.inference_mode()
def dead_unit_share(network: QNetwork, frames: Frames) -> float:
    """Return the share of hidden units that are 0 for every one of these stacked frames."""
    return float((network.features(frames) == 0).all(dim=0).float().mean())


def initialize(network: QNetwork, *, init: str, generator: torch.Generator) -> None:
    """Draw every weight of a network from `generator`, in the order its layers are listed."""
    fill = INITIALIZERS[init]
    for part, gain in (*((part, RELU_GAIN) for part in network.hidden_parts), (network.head, 1.0)):
        for layer in part.modules():
            if isinstance(layer, NoisyLinear):
                layer.initialize(generator)
            elif isinstance(layer, nn.Conv2d | nn.Linear):
                fill(layer, gain, generator)
