"""The common part of all replays: rows are stored, and samples begin at some of their indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.sampling import B, Sampling
from atari_dqn.types import StateDict, StepBatch


class Replay(Sampling[B]):
    """Samples from steps that all environments store together, a row of the ring for each time step.

    Invariant: the sampler contains exactly the indices that `_begins_sample` selects in the rows that have
    all the rows they need. These are `rows_before` earlier and `rows_after` later rows:

        row      oldest ....... first_row ................... newest − rows_after ........ newest
                 | rows_before |        in the sampler        |        rows_after        |
    """

    def __init__(
        self,
        ring: FrameRing,
        sampler: Sampler,
        *,
        rows_before: int,
        rows_after: int,
        max_abs_reward: float,
    ) -> None:
        super().__init__(ring, sampler)
        self.max_abs_reward = max_abs_reward
        self._rows_before, self._rows_after = rows_before, rows_after
        self._is_step = np.zeros((ring.rows, ring.num_envs), dtype=np.bool_)
        """A copy of the ring's `is_step` on the host, from which indices are added to the sampler."""
        self._first_row = 0
        """The oldest row of which the sampler contains indices."""

    def _begins_sample(self, rows: Int64[np.ndarray, "n"]) -> Bool[np.ndarray, "n E"]:
        """Return at which indices of these rows a sample begins; here at every step.

        The `rows_after` rows that follow each of them are stored already.
        """
        flags: np.ndarray = self._is_step[rows % self.ring.rows]
        return flags

    def begin(self, step: StepBatch) -> None:
        """Store the first frames of the run."""
        self.ring.begin(step)

    def append(
        self,
        action: Int64[np.ndarray, "E"],
        discount: Float[np.ndarray, "E"],
        step: StepBatch,
        state: Float[Tensor, "E R"] | None = None,
    ) -> None:
        """Store the actions taken on the newest frames and the step that followed, with clipped rewards.

        `state`: the recurrent states before these frames; None for an agent without memory.
        """
        del state
        self._is_step[self.ring.newest % self.ring.rows] = ~step.first
        self.ring.append(action, self._clipped(step), discount, step)
        self._drop_rows(self.ring.newest)
        self._add_rows(1)

    def extend(
        self,
        action: Int64[np.ndarray, "T E"],
        discount: Float[np.ndarray, "T E"],
        steps: StepBatch,
        states: Sequence[Float[Tensor, "E R"] | None],
        error: Float[np.ndarray, "T E"] | None = None,
    ) -> None:
        """Store T consecutive steps, with the result of T calls of `append`.

        `states` has an element for each step. `error`: the absolute errors of the samples that become
        complete with each step, where actors have computed them.
        """
        most = self.ring.rows - self._rows_before - self._rows_after
        for first in range(0, len(action), most):
            rows = slice(first, first + most)
            count = len(action[rows])
            self._drop_rows(self.ring.newest + count)  # first: afterwards their flags are overwritten
            self._write(action[rows], discount[rows], steps[rows], states[rows])
            self._add_rows(count, None if error is None else error[rows])

    def _write(
        self,
        action: Int64[np.ndarray, "T E"],
        discount: Float[np.ndarray, "T E"],
        steps: StepBatch,
        states: Sequence[Float[Tensor, "E R"] | None],
    ) -> None:
        """Write T consecutive steps to the ring."""
        del states
        rows = self.ring.newest + np.arange(len(action))
        self._is_step[rows % self.ring.rows] = ~steps.first
        self.ring.extend(action, self._clipped(steps), discount, steps)

    def newest_stacks(self) -> UInt8[Tensor, "E S H W"]:
        """Gather the newest stack of each environment, for an actor that continues from stored rows."""
        return self.ring.newest_stacks()

    @property
    def rows_stored(self) -> int:
        """Number of the newest row."""
        return self.ring.newest

    def age_steps(self, index: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
        """Compute the number of steps that all environments have made since the step at each index."""
        return self.ring.age_rows(index) * self.ring.num_envs

    def step_share(self) -> float:
        """Compute the fraction of stored indices with a step; the others are the last frames of episodes."""
        return self.ring.step_share()

    def check(self) -> None:
        """Assert the invariant; tests call it after every change."""
        ring = self.ring
        assert torch.equal(ring.own(ring.is_step).cpu(), torch.from_numpy(self._is_step))
        expected, found = self.sampled_indices(), self.sampler.valid_indices().cpu()
        own = found[(found % ring.stride >= ring.first_env) & (self._envs(found) < ring.num_envs)]
        assert torch.equal(own.sort().values, expected.sort().values)
        oldest_whole = self.ring.oldest + self._rows_before if self.ring.oldest else 0
        assert self._first_row == oldest_whole or not len(expected)

    def state_dict(self) -> StateDict:
        """Return the states of ring and sampler, and the oldest row in the sampler."""
        return {"ring": self.ring.state_dict(), "sampler": self.sampler.state_dict(), **self.rows_state()}

    def rows_state(self) -> StateDict:
        """Return the state of the rows besides ring and sampler."""
        return {"first_row": self._first_row}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of a replay of the same shape; `ValueError` if its parts do not match.

        If the rows were not saved, the replay begins again with the newest frames, and its sampler's random
        stream continues.
        """
        if "ring" not in state:
            self.begin(first_step(state["newest_frame"]))
            self._continue_stream(state)
            return
        self.ring.load_state_dict(state["ring"])
        self.sampler.load_state_dict(state["sampler"])
        self.load_rows_state(state)
        self._refuse_other_indices()

    def load_rows_state(self, state: StateDict) -> None:
        """Continue with the rows that the ring has loaded; `ValueError` if the state is of other rows."""
        self._is_step[:] = self.ring.steps_of_rows().numpy()
        self._first_row = state["first_row"]
        if not self.ring.oldest <= self._first_row <= max(0, self.ring.newest):
            raise ValueError(
                f"replay.first_row: found {self._first_row}, the rows are from {self.ring.oldest} on"
            )

    def _clipped(self, step: StepBatch) -> Float[np.ndarray, "*T E"]:
        clipped: np.ndarray = np.clip(step.reward, -self.max_abs_reward, self.max_abs_reward)
        return clipped

    def sampled_indices(self) -> Int64[Tensor, "n"]:
        """Return the indices that the sampler must contain."""
        return self._indices(self._first_row, max(self._first_row, self.ring.newest - self._rows_after + 1))

    def _indices(self, first: int, stop: int) -> Int64[Tensor, "n"]:
        """Return the indices of some rows at which samples begin, in order."""
        return self._indices_where(first, self._begins_sample(np.arange(first, stop)))

    def _indices_where(self, first: int, begins: Bool[np.ndarray, "n E"]) -> Int64[Tensor, "m"]:
        """Return the indices that are set in rows from `first` on, in order."""
        row, env = np.nonzero(begins)
        return torch.from_numpy(self.ring.index_of(first + row, env))

    def _envs(self, indices: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
        """Compute the environments of indices, counted from the first of this replay."""
        return indices % self.ring.stride - self.ring.first_env

    def _drop_rows(self, newest: int) -> None:
        """Remove the rows from the sampler that need a row which is overwritten by row `newest`."""
        oldest = newest - self.ring.rows + 1
        if oldest <= 0:
            return
        self.sampler.drop(self._indices(self._first_row, oldest + self._rows_before))
        self._first_row = oldest + self._rows_before

    def _add_rows(self, count: int, error: Float[np.ndarray, "T E"] | None = None) -> None:
        """Add the samples to the sampler that the latest `count` rows have completed, with their errors."""
        stop = self.ring.newest - self._rows_after + 1
        first = max(0, stop - count)
        if first >= stop:
            return
        begins = self._begins_sample(np.arange(first, stop))
        own = None if error is None else torch.from_numpy(error[-len(begins) :][begins])
        self.sampler.add(self._indices_where(first, begins), own)


def first_step(frame: UInt8[np.ndarray, "E H W"]) -> StepBatch:
    """Create a step in which every environment begins an episode with its frame."""
    envs = len(frame)
    none = np.zeros(envs, dtype=np.bool_)
    return StepBatch(
        frame=frame,
        reward=np.zeros(envs),
        terminated=none,
        truncated=none,
        life_lost=none,
        first=np.ones(envs, dtype=np.bool_),
    )
