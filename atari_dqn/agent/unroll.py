"""Apply a network to the frames of sequences: unroll its memory, or take each stack by itself.

B sequences, T steps that are learned from, K = T + 1 frames after the burn-in, U units and R numbers of the
state of the memory, D features, A actions. N = B K stacks of S frames, H×W one frame.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from atari_dqn.agent.memory import RecurrentQNetwork, stacks_of
from atari_dqn.agent.network import QNetwork
from atari_dqn.minibatch import SequenceBatch


class Unroll(Protocol):
    """Computes what a network gives for the T + 1 frames after the burn-in."""

    def q_values(self, network: Any, batch: SequenceBatch) -> Float[Tensor, "B K A"]:
        """Compute the q-values of each frame."""
        ...

    def features(self, network: Any, batch: SequenceBatch) -> Float[Tensor, "B K D"]:
        """Compute the input of the head for each frame."""
        ...


class UnrollMemory:
    """Unrolls a network with memory, after the burn-in, through which no gradient flows."""

    def q_values(self, network: RecurrentQNetwork, batch: SequenceBatch) -> Float[Tensor, "B K A"]:
        """Compute the q-values of each frame."""
        return network.q_values_of(self.features(network, batch))

    def features(self, network: RecurrentQNetwork, batch: SequenceBatch) -> Float[Tensor, "B K D"]:
        """Compute the input of the head for each frame."""
        outputs, _ = self.remember(network, batch)
        return network.features_of(outputs)

    def remember(
        self, network: RecurrentQNetwork, batch: SequenceBatch
    ) -> tuple[Float[Tensor, "B K U"], Float[Tensor, "B R"]]:
        """Compute the memory's outputs for each frame, and the state after the last one."""
        inputs = inputs_of(batch, burn_in_of(batch), batch.last_action.shape[1])
        return network.remember(*inputs, self.burned_in(network, batch))

    @torch.no_grad()
    def burned_in(self, network: RecurrentQNetwork, batch: SequenceBatch) -> Float[Tensor, "B R"]:
        """Compute the state before the first step: after the burn-in, or zero at an episode's start."""
        burn_in, state = burn_in_of(batch), batch.state
        if burn_in:
            _, state = network.remember(*inputs_of(batch, 0, burn_in), state)
        return state.masked_fill(batch.is_first[:, None], 0.0)


class EachStack:
    """Applies a network without memory to each stack."""

    def q_values(self, network: QNetwork, batch: SequenceBatch) -> Float[Tensor, "B K A"]:
        """Compute the q-values of each frame."""
        q = network.q_values(_stacks(batch))
        return q.view(len(batch.index), -1, q.shape[1])

    def features(self, network: QNetwork, batch: SequenceBatch) -> Float[Tensor, "B K D"]:
        """Compute the input of the head for each frame."""
        features = network.features(_stacks(batch))
        return features.view(len(batch.index), -1, features.shape[1])


def burn_in_of(batch: SequenceBatch) -> int:
    """Return the number of frames before the first step."""
    return batch.last_action.shape[1] - batch.mask.shape[1] - 1


def inputs_of(
    batch: SequenceBatch, begin: int, end: int
) -> tuple[UInt8[Tensor, "B F H W"], Int64[Tensor, "B L"], Float[Tensor, "B L"]]:
    """Select frames, last actions and last rewards of the positions from `begin` to `end` − 1.

    Positions count from the first frame of the burn-in. The stack of the first one has S − 1 older frames,
    which are selected with it: F = L + S − 1 for L positions.
    """
    older = batch.frames.shape[1] - batch.last_action.shape[1]  # S − 1
    return (
        batch.frames[:, begin : end + older],
        batch.last_action[:, begin:end],
        batch.last_reward[:, begin:end],
    )


def _stacks(batch: SequenceBatch) -> UInt8[Tensor, "N S H W"]:
    return stacks_of(batch.frames[:, burn_in_of(batch) :], batch.mask.shape[1] + 1)
