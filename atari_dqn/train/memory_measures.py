"""Measures of a memory on a minibatch of sequences: its state's norm, errors by step, and staleness.

B sequences, T steps, N frames with a stored state, R numbers of a state, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.agent.sequence_loss import SequenceTDLoss
from atari_dqn.agent.unroll import UnrollMemory, burn_in_of, inputs_of
from atari_dqn.minibatch import SequenceBatch

Measure = Callable[[RecurrentQNetwork, RecurrentQNetwork, SequenceBatch], dict[str, Tensor]]
"""Computes named scalars of an online and a target network; NaN if no sequence of a minibatch has any."""
_PARTS = 4


def state_norm(
    online: RecurrentQNetwork, target: RecurrentQNetwork, batch: SequenceBatch
) -> dict[str, Tensor]:
    """Compute the mean norm of the state after the last frame, over the sequences of full length."""
    del target
    _, state = UnrollMemory().remember(online, batch)
    return {"state_norm": state[batch.mask[:, -1]].norm(dim=1).mean()}


@dataclass(frozen=True, slots=True)
class StepErrors:
    """The mean |TD error| of the first and of the last quarter of the steps.

    Sequences that begin their episode are left out, because their state at the first step is exact.
    """

    loss: SequenceTDLoss

    def __call__(
        self, online: RecurrentQNetwork, target: RecurrentQNetwork, batch: SequenceBatch
    ) -> dict[str, Tensor]:
        """Compute both means."""
        _, td_error = self.loss.td_errors(batch, online, target)
        counts, steps = batch.mask & ~batch.is_first[:, None], max(1, batch.mask.shape[1] // _PARTS)
        parts = {"early_td_error": slice(steps), "late_td_error": slice(-steps, None)}
        return {name: td_error[:, part][counts[:, part]].abs().mean() for name, part in parts.items()}


@dataclass(frozen=True, slots=True)
class Staleness:
    """ΔQ = ‖q(ĥ) − q(h)‖₂ / |max q(ĥ)|, Kapturowski et al. (2019), section 3 and Figure 1.

    ĥ is the state that learning has at a frame, from the stored state at the start and the burn-in; h is the
    state that the actor stored at this frame. The online network computes q(ĥ) and q(h). The maximum is over
    the actions and frames of the sequence.
    """

    gather: Callable[[Int64[Tensor, "B"]], tuple[Float[Tensor, "B N R"], Bool[Tensor, "B N"]]]
    """Gathers the stored states of sequences, and whether they exist (`LaterStates`)."""
    positions: tuple[int, ...]
    """Numbers of the frames of these states, counted from the first step."""

    def __call__(
        self, online: RecurrentQNetwork, target: RecurrentQNetwork, batch: SequenceBatch
    ) -> dict[str, Tensor]:
        """Compute the mean ΔQ at the first frame with a stored state, and at the last one."""
        del target
        q, (states, exists) = UnrollMemory().q_values(online, batch), self.gather(batch.index)
        of_stored = [
            q_of_state(online, batch, position, states[:, number])
            for number, position in enumerate(self.positions)
        ]
        difference = (q[:, list(self.positions)] - torch.stack(of_stored, dim=1)).norm(dim=2)
        delta_q = difference / largest_q(q, batch.mask)[:, None].abs()
        found = exists[:, 0]  # if any state exists, the first one does
        last = exists[found].sum(dim=1, keepdim=True) - 1
        return {
            "first_delta_q": delta_q[found, 0].mean(),
            "last_delta_q": delta_q[found].gather(1, last).mean(),
        }


def largest_q(q: Float[Tensor, "B T+1 A"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B"]:
    """Find the largest q-value of each sequence; a frame belongs to it if the step before it exists."""
    belongs = torch.nn.functional.pad(mask, (1, 0), value=True)
    return q.amax(dim=2).masked_fill(~belongs, -torch.inf).amax(dim=1)


def q_of_state(
    network: RecurrentQNetwork, batch: SequenceBatch, position: int, state: Float[Tensor, "B R"]
) -> Float[Tensor, "B A"]:
    """Compute the q-values of one frame, counted from the first step, from a state before it."""
    frame = burn_in_of(batch) + position
    q, _ = network.unroll(*inputs_of(batch, frame, frame + 1), state)
    return q[:, 0]
