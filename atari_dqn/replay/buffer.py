"""The replay as training uses it: rows in, minibatches out."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.types import StateDict, StepBatch


def ring_rows(*, capacity_steps: int, lanes: int, stack: int, n_step: int) -> int:
    """Return the rows it takes to keep `capacity_steps` transitions that can be sampled.

    The oldest S − 1 rows lack frames for a whole stack, the newest n lack steps for a whole window.
    """
    return -(-capacity_steps // lanes) + stack - 1 + n_step


class ReplayBuffer:
    """Joins a ring of frames to a sampler.

    Invariant: the sampler lists exactly the stored rows that hold a step and have a whole stack; of these the
    newest n − 1 rows are held back until their n-step window is complete, so none straddles the newest row.
    """

    def __init__(
        self, ring: FrameRing, sampler: UniformSampler, *, n_step: int, gamma: float, max_abs_reward: float
    ) -> None:
        self.ring, self.sampler = ring, sampler
        self.n_step, self.gamma, self.max_abs_reward = n_step, gamma, max_abs_reward
        self._steps_in_row = np.zeros(ring.rows, dtype=np.int64)
        self._first_listed_row = 0

    def begin(self, step: StepBatch) -> None:
        """Store the run's first frames."""
        self.ring.begin(step)

    def append(
        self, action: Int64[np.ndarray, "E"], discount: Float[np.ndarray, "E"], step: StepBatch
    ) -> None:
        """Store what was done on the newest frames and what followed; rewards are clipped here."""
        row = self.ring.newest
        reward = np.clip(step.reward, -self.max_abs_reward, self.max_abs_reward)
        self.ring.append(action, reward, discount, step)
        self._forget_rows_before(self.ring.newest - self.ring.rows + self.ring.stack)
        lanes = np.flatnonzero(~step.first)
        self.sampler.add(torch.from_numpy(lanes) + row % self.ring.rows * self.ring.lanes)
        self._steps_in_row[row % self.ring.rows] = len(lanes)

    def newest_stacks(self) -> UInt8[Tensor, "E S H W"]:
        """Return what the agent sees now on each lane."""
        return self.ring.newest_stacks()

    def sample(self) -> Minibatch:
        """Return a minibatch of n-step transitions."""
        cell, weight = self.sampler.draw(held_back=self._held_back())
        window = self.ring.window(cell, n_step=self.n_step, gamma=self.gamma)
        later = self.ring.ahead(cell, window.span_steps)
        s_tm1, s_t = self.ring.stacks(torch.cat([cell, later])).chunk(2)
        return Minibatch(
            s_tm1=s_tm1,
            a_tm1=self.ring.action[cell].long(),
            r_t=window.r_t,
            discount_t=window.discount_t,
            s_t=s_t,
            weight=weight,
            cell=cell,
        )

    @property
    def num_transitions(self) -> int:
        """Transitions that can be sampled now."""
        return self.sampler.count - self._held_back()

    def check(self) -> None:
        """Assert the invariant; tests call it after every change."""
        ring, rows = self.ring, range(self._first_listed_row, self.ring.newest)
        expected = [
            row % ring.rows * ring.lanes + lane
            for row in rows
            for lane in range(ring.lanes)
            if ring.is_step[row % ring.rows * ring.lanes + lane]
        ]
        places = (self.sampler.first + np.arange(self.sampler.count)) % len(self.sampler.cells)
        assert self.sampler.cells[torch.from_numpy(places)].tolist() == expected
        assert rows.start >= (ring.oldest + ring.stack - 1 if ring.oldest else 0)

    def state_dict(self) -> StateDict:
        """Return ring, sampler and the counts that join them."""
        return {
            "ring": self.ring.state_dict(),
            "sampler": self.sampler.state_dict(),
            "steps_in_row": self._steps_in_row.copy(),
            "first_listed_row": self._first_listed_row,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state of a replay of the same shape."""
        self.ring.load_state_dict(state["ring"])
        self.sampler.load_state_dict(state["sampler"])
        self._steps_in_row[:] = state["steps_in_row"]
        self._first_listed_row = state["first_listed_row"]

    def _held_back(self) -> int:
        newest = self.ring.newest
        rows = np.arange(max(0, newest - self.n_step + 1), newest)
        return int(self._steps_in_row[rows % self.ring.rows].sum())

    def _forget_rows_before(self, row: int) -> None:
        """Take rows off the list once their stack reaches back into a row that was overwritten."""
        if self.ring.oldest == 0:
            return
        rows = np.arange(self._first_listed_row, row)
        self.sampler.drop_oldest(int(self._steps_in_row[rows % self.ring.rows].sum()))
        self._first_listed_row = row
