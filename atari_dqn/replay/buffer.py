"""The replay buffer: it stores the steps of all environments and returns minibatches of transitions."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.types import StateDict, StepBatch


def ring_rows(*, capacity_steps: int, envs: int, stack: int, n_step: int) -> int:
    """Compute the rows of a ring from which `capacity_steps` transitions can be sampled.

    No transition starts at the oldest S − 1 rows, whose stack is incomplete, or at the newest n, whose n-step
    window is incomplete.
    """
    return -(-capacity_steps // envs) + stack - 1 + n_step


class ReplayBuffer:
    """A ring of frames together with a sampler.

    Invariant: the sampler contains exactly the stored indices at which there are a step, a complete stack and
    a complete n-step window. The newest n rows are added once their window is complete.
    """

    def __init__(
        self, ring: FrameRing, sampler: Sampler, *, n_step: int, gamma: float, max_abs_reward: float
    ) -> None:
        self.ring, self.sampler = ring, sampler
        self.n_step, self.gamma, self.max_abs_reward = n_step, gamma, max_abs_reward
        self._window = partial(ring.window, n_step=n_step) if n_step > 1 else ring.one_step_window
        self._is_step = np.zeros((ring.rows, ring.num_envs), dtype=np.bool_)
        """A copy of the ring's `is_step` on the host, from which indices are added to the sampler."""
        self._first_row = 0
        """The oldest row of which the sampler contains indices."""
        self._sampled_at: int | None = None
        """The newest row when the latest minibatch was sampled."""

    def begin(self, step: StepBatch) -> None:
        """Store the first frames of the run."""
        self.ring.begin(step)

    def append(
        self, action: Int64[np.ndarray, "E"], discount: Float[np.ndarray, "E"], step: StepBatch
    ) -> None:
        """Store the actions taken on the newest frames and the step that followed, with clipped rewards."""
        self._is_step[self.ring.newest % self.ring.rows] = ~step.first
        reward = np.clip(step.reward, -self.max_abs_reward, self.max_abs_reward)
        self.ring.append(action, reward, discount, step)
        self._drop_rows_before(self.ring.newest - self.ring.rows + self.ring.stack)
        if self.ring.newest >= self.n_step:
            self.sampler.add(self._step_indices(self.ring.newest - self.n_step))

    def newest_stacks(self) -> UInt8[Tensor, "E S H W"]:
        """Gather the newest stack of each environment, for an actor that continues from stored rows."""
        return self.ring.newest_stacks()

    def prepare(self, env_frames: int) -> None:
        """Update the sampler after rows were stored, with β at `env_frames`. Call it before `sample`."""
        self.sampler.prepare(env_frames)

    def sample(self) -> Minibatch:
        """Sample a minibatch of n-step transitions."""
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

    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> Minibatch:
        """Gather the n-step transitions that begin at these indices."""
        window = self._window(index, gamma=self.gamma)
        later = self.ring.ahead(index, window.span_steps)
        s_tm1, s_t = self.ring.stacks(torch.cat([index, later])).chunk(2)
        return Minibatch(
            s_tm1=s_tm1,
            a_tm1=self.ring.action[index].long(),
            r_t=window.r_t,
            discount_t=window.discount_t,
            s_t=s_t,
            weight=weight,
            index=index,
        )

    def update_priorities(self, batch: Minibatch, error: Float[Tensor, "B"]) -> None:
        """Update the priorities of the latest minibatch by its errors, before the next row is stored."""
        assert self._sampled_at == self.ring.newest, (
            "the replay has stored a row since the minibatch was sampled"
        )
        self.sampler.update_priorities(batch.index, error.to(batch.index.device))

    @property
    def num_transitions(self) -> int:
        """Number of transitions that can be sampled."""
        return self.sampler.count

    def check(self) -> None:
        """Assert the invariant; tests call it after every change."""
        ring = self.ring
        stored = torch.arange(ring.oldest, ring.newest) % ring.rows
        on_device = ring.is_step.view(ring.rows, ring.num_envs).cpu()[stored]
        assert torch.equal(on_device, torch.from_numpy(self._is_step)[stored])
        last = self.ring.newest - self.n_step
        expected = [
            index for row in range(self._first_row, last + 1) for index in self._step_indices(row).tolist()
        ]
        assert sorted(self.sampler.valid_indices().tolist()) == sorted(expected)
        assert self._is_step.ravel().tolist() == self.ring.is_step.tolist()
        oldest_whole = self.ring.oldest + self.ring.stack - 1 if self.ring.oldest else 0
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
            self.begin(_first_step(state["newest_frame"]))
            return
        self.ring.load_state_dict(state["ring"])
        self.sampler.load_state_dict(state["sampler"])
        self._is_step[:] = self.ring.steps_of_rows().numpy()
        self._first_row = state["first_row"]
        self._refuse_other_indices()

    def _refuse_other_indices(self) -> None:
        """Raise a `ValueError` unless the sampler contains exactly the indices of the transitions."""
        first, last = self._first_row, self.ring.newest - self.n_step
        if not self.ring.oldest <= first <= max(0, self.ring.newest):
            raise ValueError(f"replay.first_row: found {first}, the rows are from {self.ring.oldest} on")
        places = torch.arange(first, max(first, last + 1)) % self.ring.rows
        steps = torch.from_numpy(self._is_step)[places].nonzero()
        expected = places[steps[:, 0]] * self.ring.num_envs + steps[:, 1]
        stored = self.sampler.valid_indices().cpu()
        if len(stored) != self.sampler.count or not torch.equal(stored.sort().values, expected.sort().values):
            raise ValueError("replay.sampler: its indices are not those of the transitions in the replay")

    def _step_indices(self, row: int) -> Int64[Tensor, "n"]:
        """Return the indices of the steps in a row."""
        place = row % self.ring.rows
        return torch.from_numpy(np.flatnonzero(self._is_step[place]) + place * self.ring.num_envs)

    def _drop_rows_before(self, row: int) -> None:
        """Remove the rows before `row` from the sampler, because their stacks are partly overwritten."""
        if self.ring.oldest == 0:
            return
        for gone in range(self._first_row, row):
            self.sampler.drop(self._step_indices(gone))
        self._first_row = row


def _first_step(frame: UInt8[np.ndarray, "E H W"]) -> StepBatch:
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
