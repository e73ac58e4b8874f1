"""Heads: features in, Z numbers per action out. B batch, D features, A actions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agent.torsos import MakeLinear


class Head(nn.Module, ABC):
    """Turns the features of `streams` hidden layers into `size` numbers per action."""

    streams: int

    @abstractmethod
    def forward(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B A Z"]:
        """Compute the numbers of every action."""


class LinearHead(Head):
    """Every action's numbers by one linear layer."""

    streams = 1

    def __init__(
        self, num_features: int, num_actions: int, size: int = 1, *, layer: MakeLinear = nn.Linear
    ) -> None:
        super().__init__()
        self.size = size
        self.output = layer(num_features, num_actions * size)

    def forward(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B A Z"]:
        """Compute the numbers of every action."""
        outputs: Tensor = self.output(features)
        return outputs.view(features.shape[0], -1, self.size)


class DuelingHead(Head):
    """The state's numbers plus each action's advantage over their mean. Wang et al. (2016), eq. 9.

    Of logits each atom has a value and advantages of its own. Hessel et al. (2018).
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
        state, actions = self._split(features)
        advantage = self.advantage(actions).view(features.shape[0], -1, self.size)
        outputs: Tensor = advantage + (self.value(state)[:, None] - advantage.mean(dim=1, keepdim=True))
        return outputs

    def _split(self, features: Float[Tensor, "B D"]) -> tuple[Tensor, ...]:
        """Split the features into those of the state's value and those of the advantages."""
        return features.chunk(self.streams, dim=1)


class SharedDuelingHead(DuelingHead):
    """A dueling head whose two parts share the hidden units, as in Dopamine's FullRainbowNetwork."""

    streams = 1

    def _split(self, features: Float[Tensor, "B D"]) -> tuple[Tensor, ...]:
        return features, features
