"""The replay of sequences, on the same rows as transitions. Kapturowski et al. (2019), section 2.3.

The sequences of an episode start at multiples of the period, counted from the episode's first step, as long
as they have a step that no earlier one has. Here T = 4 steps, a burn-in of 2 and a period of 2, for an
episode of 7 steps on the frames A to H:

    frames   | A   B   C   D   E   F   G   H |          | = start of an episode
    first      a   b   c   d   E                        a = a step that is learned from
    second     ·   ·   c   d   e   f   G                · = burn-in
    third              ·   ·   e   f   g   H            E = the last frame, which is only bootstrapped from

A sequence never crosses the end of its episode: the last one may be shorter, and its missing steps are
masked. The first one has no burn-in, and begins with a zero state. All others have their whole burn-in,
because it is not longer than the period.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor
from torch.nn import functional as F

from atari_dqn.minibatch import NO_ACTION, SequenceBatch
from atari_dqn.replay.replay import Replay
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.states import StateTable
from atari_dqn.schedule import Horizon
from atari_dqn.types import StateDict, StepBatch

_SPARE_SLOTS = 4
"""Slots that an environment has in addition to one for each period: for episodes that begin and end within
the replay, and for states whose sequence turns out not to exist."""


def sequence_ring_rows(*, capacity_steps: int, envs: int, stack: int, burn_in: int, length: int) -> int:
    """Compute the rows of a ring in which `capacity_steps` steps can be the start of a sequence."""
    return -(-capacity_steps // envs) + _rows_before(stack, burn_in) + length


def state_slots(*, rows: int, period: int) -> int:
    """Compute the number of recurrent states that an environment needs at most.

    An episode of L steps has at most (L − 1) / period sequences with a stored state.
    """
    return rows // period + _SPARE_SLOTS


def burn_in_begins(number: Int[np.ndarray, "*E"], *, burn_in: int, period: int) -> Bool[np.ndarray, "*E"]:
    """Return whether a burn-in begins at steps with these numbers in their episodes."""
    start = number + burn_in
    begins: np.ndarray = (start >= period) & (start % period == 0)
    return begins


def states_written(steps: Int[np.ndarray, "E"], *, burn_in: int, period: int) -> Int[np.ndarray, "E"]:
    """Count the states that were written for episodes of this many steps: one at each k · period − burn-in.

    k ≥ 1: the first sequence has no burn-in.
    """
    written: np.ndarray = np.maximum(0, (steps - 1 + burn_in) // period)
    return written


def states_used(steps: Int[np.ndarray, "E"], *, length: int, period: int) -> Int[np.ndarray, "E"]:
    """Count the states with which sequences of these episodes begin.

    Sequence k ≥ 1 exists if the one before it ends before the episode does.
    """
    used: np.ndarray = np.maximum(0, (steps - length - 1) // period + 1)
    return used


def sequence_begins(
    number: Int[np.ndarray, "*E"], has_new: Bool[np.ndarray, "*E"], *, period: int
) -> Bool[np.ndarray, "*E"]:
    """Return whether a sequence begins at steps with these numbers in their episodes.

    `has_new`: whether the episode reaches the first step that the previous sequence does not have.
    """
    begins: np.ndarray = (number % period == 0) & ((number == 0) | has_new)
    return begins


def _rows_before(stack: int, burn_in: int) -> int:
    """Compute the rows before a sequence that it needs: its burn-in, the stack, and the previous action."""
    return burn_in + max(stack - 1, 1)


class SequenceReplay(Replay[SequenceBatch]):
    """A replay of sequences of `length` steps, each identified by the index of its first step.

    A sequence is added to the sampler when `length` later rows are stored, even if its episode ended earlier:
    sequences are then added and dropped in the order of their first steps. T = `length` steps are learned
    from, and L = burn-in + T + 1 frames are in a batch.

    `states` holds the recurrent states at the rows at which burn-ins begin; None if sequences start from
    zero.
    """

    def __init__(
        self,
        ring: FrameRing,
        sampler: Sampler,
        *,
        length: int,
        burn_in: int,
        period: int,
        n_step: int,
        gamma: float,
        max_abs_reward: float,
        state_width: int,
        states: StateTable | None = None,
    ) -> None:
        super().__init__(
            ring,
            sampler,
            rows_before=_rows_before(ring.stack, burn_in),
            rows_after=length,
            max_abs_reward=max_abs_reward,
        )
        assert burn_in <= period <= length
        assert 1 <= n_step <= length
        self.length, self.burn_in, self.period = length, burn_in, period
        self.n_step, self.gamma, self._state_width, self.states = n_step, gamma, state_width, states
        self._step_of_episode = np.zeros((ring.rows, ring.num_envs), dtype=np.int32)
        """The number of each row in its episode, on the host."""
        self._positions = torch.arange(-self._rows_before, length + 1, device=ring.device)

    def steps_to_report(self) -> Int64[Tensor, "n"]:
        """Return the indices of all stored steps: no sequence begins with the last steps of an episode."""
        rows = np.arange(self.ring.oldest, self.ring.newest) % self.ring.rows
        return self._indices_where(self.ring.oldest, self._is_step[rows])

    def set_horizon(self, horizon: Horizon) -> None:
        """Set n and γ of the next minibatches."""
        assert 1 <= horizon.n_step <= self.length
        self.n_step, self.gamma = horizon.n_step, horizon.gamma

    def append(
        self,
        action: Int64[np.ndarray, "E"],
        discount: Float[np.ndarray, "E"],
        step: StepBatch,
        state: Float[Tensor, "E R"] | None = None,
    ) -> None:
        """Store a step as `Replay.append` does, and the recurrent states with which a burn-in may begin."""
        row, rows = self.ring.newest, self.ring.rows
        number = self._step_of_episode[row % rows].astype(np.int64)
        if self.states is not None:
            self._store_states(row, number, step, state)
        super().append(action, discount, step, state)
        # only now: at the first wrap, `super().append` reads the number that this overwrites
        self._step_of_episode[(row + 1) % rows] = np.where(step.first, 0, number + 1)

    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> SequenceBatch:
        """Gather the sequences that begin at these indices."""
        ring, rows = self.ring, self.ring.ahead(index[:, None], self._positions)
        # | stack, with the previous action | burn-in | steps learned from | last frame |
        first_learned = self._rows_before
        begin = first_learned - self.burn_in
        learned, previous = rows[:, first_learned:-1], rows[:, begin - 1 : -1]
        mask = ring.is_step[learned].cumprod(dim=1).bool()
        belongs = torch.cat([self._belongs_before(rows[:, : first_learned + 1]), mask], dim=1)
        frames = rows.masked_fill(~belongs, ring.zero_index)[:, begin - (ring.stack - 1) :]
        has_previous = belongs[:, begin - 1 : -1] & belongs[:, begin:]
        is_first = ring.start[index]
        return SequenceBatch(
            frames=ring.frame.index_select(0, frames.flatten()).view(*frames.shape, *ring.frame.shape[1:]),
            last_action=ring.action[previous].long().masked_fill(~has_previous, NO_ACTION),
            last_reward=ring.reward[previous].masked_fill(~has_previous, 0.0),
            state=self._states_at(rows[:, begin]).masked_fill(is_first[:, None], 0.0),
            is_first=is_first,
            mask=mask,
            a_tm1=ring.action[learned].long().masked_fill(~mask, 0),
            **n_step_windows(
                ring.reward[learned], ring.discount[learned], mask, n_step=self.n_step, gamma=self.gamma
            ),
            weight=weight,
            index=index,
        )

    def state_dict(self) -> StateDict:
        """Return a replay's state, and the recurrent states."""
        states = {} if self.states is None else {"states": self.states.state_dict()}
        return {**super().state_dict(), **states}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of a replay of the same shape; `ValueError` if its parts do not match."""
        if self.states is not None and "states" in state:
            self.states.load_state_dict(state["states"])
        super().load_state_dict(state)

    def rows_state(self) -> StateDict:
        """Return a replay's state of its rows, and the number of the oldest row in its episode."""
        oldest = self._step_of_episode[self.ring.oldest % self.ring.rows].copy()
        return {**super().rows_state(), "oldest_step": oldest}

    def load_rows_state(self, state: StateDict) -> None:
        """Continue with the rows that the ring has loaded, and count them from the starts of episodes."""
        super().load_rows_state(state)
        ring = self.ring
        rows = np.arange(ring.oldest, ring.newest + 1)[:, None]
        starts = ring.own(ring.start).cpu().numpy()[rows[:, 0] % ring.rows]
        latest_start = np.maximum.accumulate(
            np.where(starts, rows, ring.oldest - np.asarray(state["oldest_step"])), axis=0
        )
        self._step_of_episode[rows[:, 0] % ring.rows] = rows - latest_start

    def _begins_sample(self, rows: Int64[np.ndarray, "n"]) -> Bool[np.ndarray, "n E"]:
        """Return at which indices of these rows a sequence begins, with a step that no earlier one has."""
        further = self.length - self.period  # the first step that the sequence before does not have
        rows, new = rows % self.ring.rows, (rows + further) % self.ring.rows
        number = self._step_of_episode[rows]
        has_new = self._is_step[new] & (self._step_of_episode[new] == number + further)
        begins: np.ndarray = self._is_step[rows] & sequence_begins(number, has_new, period=self.period)
        return begins

    def _write(
        self,
        action: Int64[np.ndarray, "T E"],
        discount: Float[np.ndarray, "T E"],
        steps: StepBatch,
        states: Sequence[Float[Tensor, "E R"] | None],
    ) -> None:
        """Write steps as a replay does, and the recurrent states with which a burn-in may begin."""
        row, rows = self.ring.newest, self.ring.rows
        numbers = _numbers_of_steps(self._step_of_episode[row % rows], steps.first)
        if self.states is not None:
            self.states.clear(row, len(action))
            begins = burn_in_begins(numbers[:-1], burn_in=self.burn_in, period=self.period)
            for t in np.flatnonzero((begins | steps.first).any(axis=1)).tolist():
                self._store_states(row + t, numbers[t], steps[t], states[t])
        super()._write(action, discount, steps, states)
        self._step_of_episode[(row + 1 + np.arange(len(action))) % rows] = numbers[1:]

    def _store_states(
        self, row: int, number: Int64[np.ndarray, "E"], step: StepBatch, state: Float[Tensor, "E R"] | None
    ) -> None:
        """Store the states with which burn-ins begin; give back those whose sequence does not exist."""
        assert self.states is not None
        begins = burn_in_begins(number, burn_in=self.burn_in, period=self.period)
        self.states.write(row, ~step.first & begins, state)
        written = states_written(number, burn_in=self.burn_in, period=self.period)
        used = states_used(number, length=self.length, period=self.period)
        self.states.give_back(np.where(step.first, written - used, 0))

    def _states_at(self, rows: Int64[Tensor, "B"]) -> Float[Tensor, "B R"]:
        if self.states is None:
            return torch.zeros((len(rows), self._state_width), device=self.ring.device)
        return self.states.read(rows)

    def _belongs_before(self, rows: Int64[Tensor, "B K"]) -> Bool[Tensor, "B K"]:
        """Return which rows belong to the same episode as the last one."""
        starts = self.ring.start[rows]
        later = F.pad(starts[:, 1:], (0, 1)).flip(1).cumsum(dim=1).flip(1)
        return later == 0


def _numbers_of_steps(
    number: Int[np.ndarray, "E"], first: Bool[np.ndarray, "T E"]
) -> Int64[np.ndarray, "T1 E"]:
    """Compute the numbers of T + 1 rows within their episodes, from those of the first row."""
    rows = np.arange(len(first) + 1)[:, None]
    starts = np.where(first, rows[1:], -number.astype(np.int64))
    return rows - np.maximum.accumulate(np.concatenate([-number[None].astype(np.int64), starts]), axis=0)


def n_step_windows(
    reward: Float[Tensor, "B T"],
    discount: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    n_step: int,
    gamma: float,
) -> dict[str, Tensor]:
    """Compute the n-step windows from each step, which end with the sequence or its episode."""
    length = mask.shape[1]
    reward = reward.masked_fill(~mask, 0.0)
    factor = (gamma * discount).masked_fill(~mask, 1.0)
    later = (0, n_step - 1)
    rewards = F.pad(reward, later).unfold(1, n_step, 1)
    discounts = F.pad(factor, later, value=1.0).unfold(1, n_step, 1).cumprod(dim=2)
    before = F.pad(discounts[..., :-1], (1, 0), value=1.0)
    end = torch.arange(n_step, n_step + length, device=mask.device)
    return {
        "r_t": (before * rewards).sum(dim=2),
        "discount_t": discounts[..., -1],
        "end_t": torch.minimum(end, mask.sum(dim=1, keepdim=True)),
    }
