"""Heads: from features to Z outputs per action. B batch, D features, A actions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agent.torsos import MakeLinear


class Head(nn.Module, ABC):
    """Computes Z = `size` outputs per action from the D features of `streams` hidden layers."""

    streams: int

    @abstractmethod
    def forward(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B A Z"]:
        """Compute the outputs of every action."""


class LinearHead(Head):
    """One linear layer for all actions."""

    streams = 1

    def __init__(
        self, num_features: int, num_actions: int, size: int = 1, *, layer: MakeLinear = nn.Linear
    ) -> None:
        super().__init__()
        self.size = size
        self.output = layer(num_features, num_actions * size)

    def forward(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B A Z"]:
        """Compute the outputs of every action."""
        outputs: Tensor = self.output(features)
        return outputs.view(features.shape[0], -1, self.size)


class DuelingHead(Head):
    """State value plus advantages, less their mean over actions. Wang et al. (2016), eq. 9.

    With Z > 1 this is done for each of the Z outputs separately. Hessel et al. (2018).
    """

    streams = 2

    def __init__(
        self, num_features: int, num_actions: int, size: int = 1, *, layer: MakeLinear = nn.Linear
    ) -> None:
        super().__init__()
        self.size = size
        units = num_features // self.streams
        self.value = layer(units, size)
        self.advantage = layer(units, num_actions * size)

    def forward(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B A Z"]:
        """Compute V + A − mean A for every action."""
        of_value, of_advantages = self._split(features)
        advantage = self.advantage(of_advantages).view(features.shape[0], -1, self.size)
        outputs: Tensor = advantage + (self.value(of_value)[:, None] - advantage.mean(dim=1, keepdim=True))
        return outputs

    def _split(self, features: Float[Tensor, "B D"]) -> tuple[Tensor, ...]:
        """Split the features into those for the value and those for the advantages."""
        return features.chunk(self.streams, dim=1)


class SharedDuelingHead(DuelingHead):
    """A dueling head whose two streams share the hidden layer, as in Dopamine's FullRainbowNetwork."""

    streams = 1

    def _split(self, features: Float[Tensor, "B D"]) -> tuple[Tensor, ...]:
        return features, features
