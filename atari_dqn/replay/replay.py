"""The common part of all replays: rows are stored, and samples begin at some of their indices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from atari_dqn.minibatch import Batch
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.schedule import Horizon
from atari_dqn.types import StateDict, StepBatch

B = TypeVar("B", bound=Batch, covariant=True)


class Replay(ABC, Generic[B]):
    """A ring of frames together with a sampler of the indices at which samples begin.

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
        self.ring, self.sampler, self.max_abs_reward = ring, sampler, max_abs_reward
        self._rows_before, self._rows_after = rows_before, rows_after
        self._is_step = np.zeros((ring.rows, ring.num_envs), dtype=np.bool_)
        """A copy of the ring's `is_step` on the host, from which indices are added to the sampler."""
        self._first_row = 0
        """The oldest row of which the sampler contains indices."""
        self._sampled_at: int | None = None
        """The newest row when the latest minibatch was sampled."""

    @abstractmethod
    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> B:
        """Gather the samples that begin at these indices."""

    @abstractmethod
    def _begins_sample(self, rows: Int64[np.ndarray, "n"]) -> Bool[np.ndarray, "n E"]:
        """Return at which indices of these rows a sample begins; `rows_after` later rows are stored."""

    @abstractmethod
    def set_horizon(self, horizon: Horizon) -> None:
        """Set n and γ of the next minibatches."""

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
        self._drop_rows_before(self.ring.newest - self.ring.rows + 1 + self._rows_before)
        newest_whole = self.ring.newest - self._rows_after
        if newest_whole >= 0:
            self.sampler.add(self._indices(newest_whole, newest_whole + 1))

    def newest_stacks(self) -> UInt8[Tensor, "E S H W"]:
        """Gather the newest stack of each environment, for an actor that continues from stored rows."""
        return self.ring.newest_stacks()

    def prepare(self, env_frames: int) -> None:
        """Update the sampler after rows were stored, with β at `env_frames`. Call it before `sample`."""
        self.sampler.prepare(env_frames)

    def sample(self) -> B:
        """Sample a minibatch."""
        self._sampled_at = self.ring.newest
        return self.minibatch(*self.sampler.draw())

    def sample_for_diagnostics(
        self, minibatches: int, *, env_frames: int, seed: int
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Sample indices and weights of M minibatches from a stream of `seed`, for diagnostics.

        The sampler's random stream and priorities do not change.
        """
        self.prepare(env_frames)
        size, device = (minibatches, self.sampler.batch_size), self.sampler.device
        generator = torch.Generator(device=device).manual_seed(seed)
        unit = torch.rand(size, generator=generator, dtype=torch.float64, device=device)
        return self.sampler.indices_and_weights(unit)

    def update_priorities(self, batch: Batch, error: Float[Tensor, "B"]) -> None:
        """Update the priorities of the latest minibatch by its errors, before the next row is stored."""
        assert self._sampled_at == self.ring.newest, (
            "the replay has stored a row since the minibatch was sampled"
        )
        self.sampler.update_priorities(batch.index, error.to(batch.index.device))

    @property
    def num_transitions(self) -> int:
        """Number of transitions, or of sequences, that can be sampled."""
        return self.sampler.count

    def check(self) -> None:
        """Assert the invariant; tests call it after every change."""
        ring = self.ring
        stored = torch.arange(ring.oldest, ring.newest) % ring.rows
        on_device = ring.is_step.view(ring.rows, ring.num_envs).cpu()[stored]
        assert torch.equal(on_device, torch.from_numpy(self._is_step)[stored])
        expected = self._sampled_indices().tolist()
        assert sorted(self.sampler.valid_indices().tolist()) == sorted(expected)
        assert self._is_step.ravel().tolist() == self.ring.is_step.tolist()
        oldest_whole = self.ring.oldest + self._rows_before if self.ring.oldest else 0
        assert self._first_row == oldest_whole or not expected

    def state_dict(self) -> StateDict:
        """Return the states of ring and sampler, and the oldest row in the sampler."""
        return {
            "ring": self.ring.state_dict(),
            "sampler": self.sampler.state_dict(),
            "first_row": self._first_row,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state of a replay of the same shape; `ValueError` if its parts do not match.

        If the rows were not saved, the state has only the newest frames, and the replay begins again with
        them.
        """
        if "ring" not in state:
            self.begin(first_step(state["newest_frame"]))
            return
        self.ring.load_state_dict(state["ring"])
        self.sampler.load_state_dict(state["sampler"])
        self._is_step[:] = self.ring.steps_of_rows().numpy()
        self._first_row = state["first_row"]
        self._load_further_state(state)
        self._refuse_other_indices()

    def _load_further_state(self, state: StateDict) -> None:
        """Restore what a kind of replay has besides ring and sampler."""

    def _refuse_other_indices(self) -> None:
        """Raise a `ValueError` unless the sampler contains exactly the indices at which samples begin."""
        if not self.ring.oldest <= self._first_row <= max(0, self.ring.newest):
            raise ValueError(
                f"replay.first_row: found {self._first_row}, the rows are from {self.ring.oldest} on"
            )
        expected, stored = self._sampled_indices(), self.sampler.valid_indices().cpu()
        if len(stored) != self.sampler.count or not torch.equal(stored.sort().values, expected.sort().values):
            raise ValueError("replay.sampler: its indices are not those of the samples in the replay")

    def _clipped(self, step: StepBatch) -> Float[np.ndarray, "E"]:
        clipped: np.ndarray = np.clip(step.reward, -self.max_abs_reward, self.max_abs_reward)
        return clipped

    def _sampled_indices(self) -> Int64[Tensor, "n"]:
        """Return the indices that the sampler must contain."""
        return self._indices(self._first_row, max(self._first_row, self.ring.newest - self._rows_after + 1))

    def _indices(self, first: int, stop: int) -> Int64[Tensor, "n"]:
        """Return the indices of some rows at which samples begin, in order."""
        row, env = np.nonzero(self._begins_sample(np.arange(first, stop)))
        return torch.from_numpy((first + row) % self.ring.rows * self.ring.num_envs + env)

    def _drop_rows_before(self, row: int) -> None:
        """Remove the rows before `row` from the sampler, because rows that they need are overwritten."""
        if self.ring.oldest == 0:
            return
        self.sampler.drop(self._indices(self._first_row, row))
        self._first_row = row


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
