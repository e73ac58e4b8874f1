"""Networks with memory: value(head(hidden(memory(encoded frames, last reward, last action)))).

B sequences, L steps, S stacked frames, F = L + S − 1, H×W one frame, D inputs and U units of the memory, R
numbers of its state, A actions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.heads import Head
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import Torso
from atari_dqn.minibatch import NO_ACTION

_FORGET_BIAS = 1.0
"""Initial bias of an LSTM's forget gate. Gers et al. (2000); Jozefowicz et al. (2015); Sonnet and Haiku."""
_TRUNCATION_SIGMAS = 2.0
"""Largest initial weight in standard deviations, as Sonnet and Haiku."""


class Memory(nn.Module, ABC):
    """A recurrent layer. Its state is one row of `width` numbers for each sequence, and begins with zeros."""

    states: int
    """Number of values in the state for each unit."""

    def __init__(self, layer: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        self.layer, self.width = layer, self.states * layer.hidden_size

    @abstractmethod
    def forward(
        self, inputs: Float[Tensor, "B L D"], state: Float[Tensor, "B R"]
    ) -> tuple[Float[Tensor, "B L U"], Float[Tensor, "B R"]]:
        """Compute the outputs of L steps, and the state after them."""

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weights of every gate from N(0, 1 / (D + U)) truncated at 2σ; biases are 0.

        These are the initial weights of Sonnet's and Haiku's LSTM, on which R2D2 and Acme are built.
        """
        std = 1 / math.sqrt(self.layer.input_size + self.layer.hidden_size)
        edge = _TRUNCATION_SIGMAS * std
        for name, parameter in self.layer.named_parameters():
            drawn = torch.zeros(parameter.shape)
            if name.startswith("weight"):
                nn.init.trunc_normal_(drawn, std=std, a=-edge, b=edge, generator=generator)
            parameter.copy_(drawn)


class LSTMMemory(Memory):
    """An LSTM, Hochreiter & Schmidhuber (1997); its state is h and c of the paper's symbols."""

    states = 2

    def __init__(self, num_inputs: int, units: int) -> None:
        super().__init__(nn.LSTM(num_inputs, units, batch_first=True))

    def forward(
        self, inputs: Float[Tensor, "B L D"], state: Float[Tensor, "B R"]
    ) -> tuple[Float[Tensor, "B L U"], Float[Tensor, "B R"]]:
        """Compute the outputs of L steps, and the state after them."""
        h, c = (part.contiguous() for part in state[None].chunk(2, dim=2))
        outputs, (h, c) = self.layer(inputs, (h, c))
        return outputs, torch.cat([h[0], c[0]], dim=1)

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weights as every memory, and set the forget gate's bias to 1."""
        super().initialize(generator)
        bias = dict(self.layer.named_parameters())["bias_ih_l0"]
        _, forget, _, _ = bias.chunk(4)  # PyTorch's order: input, forget, update, output
        forget.fill_(_FORGET_BIAS)


class GRUMemory(Memory):
    """A GRU, Cho et al. (2014); its state is the output."""

    states = 1

    def __init__(self, num_inputs: int, units: int) -> None:
        super().__init__(nn.GRU(num_inputs, units, batch_first=True))

    def forward(
        self, inputs: Float[Tensor, "B L D"], state: Float[Tensor, "B R"]
    ) -> tuple[Float[Tensor, "B L U"], Float[Tensor, "B R"]]:
        """Compute the outputs of L steps, and the state after them."""
        outputs, output = self.layer(inputs, state[None].contiguous())
        return outputs, output[0]


MEMORIES: dict[str, type[LSTMMemory | GRUMemory]] = {"lstm": LSTMMemory, "gru": GRUMemory}


class RecurrentQNetwork(QNetwork):
    """A Q-network with a memory between the torso's convolutions and the hidden layer.

    `hidden` replaces the torso's own hidden layer; it is the identity where the memory's outputs are the
    features. With `has_inputs` the memory also gets the last reward and the last action. The torso computes
    in `precision`, the rest in fp32. `unroll` is the one implementation: acting is an unroll of one step.
    """

    def __init__(
        self,
        torso: Torso,
        memory: Memory,
        hidden: nn.Module,
        head: Head,
        *,
        num_actions: int,
        has_inputs: bool,
        precision: str = "fp32",
    ) -> None:
        super().__init__(torso, head, precision=precision)
        self.memory, self.hidden = memory, hidden
        self.num_actions, self.has_inputs = num_actions, has_inputs

    @property
    def encoder_parts(self) -> tuple[tuple[nn.Module, bool], ...]:
        """The modules in front of the head but the memory, and whether their layers have a ReLU.

        `Memory.initialize` draws the weights of the memory.
        """
        return (self.torso, True), (self.hidden, True)

    @property
    def hidden_layer(self) -> nn.Module:
        """The module with the hidden layers of the head's streams, which are computed as one layer."""
        return self.hidden

    def features(self, frames: Tensor) -> Tensor:
        """Raise an AssertionError: without the state there are no features."""
        raise AssertionError(f"{len(frames)} stacks without a recurrent state; use `unroll`")

    def unroll(
        self,
        frames: UInt8[Tensor, "B F H W"],
        last_action: Int64[Tensor, "B L"],
        last_reward: Float[Tensor, "B L"],
        state: Float[Tensor, "B R"],
    ) -> tuple[Float[Tensor, "B L A"], Float[Tensor, "B R"]]:
        """Compute the q-values of L consecutive steps, and the state after them."""
        outputs, state = self.remember(frames, last_action, last_reward, state)
        return self.q_values_of(self.features_of(outputs)), state

    def remember(
        self,
        frames: UInt8[Tensor, "B F H W"],
        last_action: Int64[Tensor, "B L"],
        last_reward: Float[Tensor, "B L"],
        state: Float[Tensor, "B R"],
    ) -> tuple[Float[Tensor, "B L U"], Float[Tensor, "B R"]]:
        """Compute the memory's outputs in L consecutive steps, and the state after them."""
        stacks = stacks_of(frames, last_action.shape[1])
        with self.torso_precision(stacks):
            encoded = self.torso.encode(stacks)
        inputs = [encoded.float().view(*last_action.shape, -1)]
        if self.has_inputs:
            inputs += [last_reward[..., None], self._one_hot(last_action)]
        remembered: tuple[Tensor, Tensor] = self.memory(torch.cat(inputs, dim=2), state)
        return remembered

    def features_of(self, outputs: Float[Tensor, "B L U"]) -> Float[Tensor, "B L D"]:
        """Compute the input of the head from the memory's outputs."""
        features: Tensor = self.hidden(outputs.flatten(0, 1))
        return features.view(*outputs.shape[:2], -1)

    def q_values_of(self, features: Float[Tensor, "B L D"]) -> Float[Tensor, "B L A"]:
        """Compute the q-values of features."""
        q: Tensor = self.value(self.head(features.flatten(0, 1))).q_values()
        return q.view(*features.shape[:2], -1)

    def _one_hot(self, action: Int64[Tensor, "B L"]) -> Float[Tensor, "B L A"]:
        return F.one_hot(action - NO_ACTION, self.num_actions + 1)[..., 1:].float()


def stacks_of(frames: UInt8[Tensor, "B F H W"], length: int) -> UInt8[Tensor, "N S H W"]:
    """Gather the stack of each of L consecutive steps."""
    stack = frames.shape[1] - length + 1
    return frames.unfold(1, stack, 1).movedim(-1, 2).flatten(0, 1)
