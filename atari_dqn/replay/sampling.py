"""The part of a replay that minibatches are sampled from: gathered from a ring at indices of a sampler."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.minibatch import Batch
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.rng import restore_generator
from atari_dqn.schedule import Horizon
from atari_dqn.types import StateDict

B = TypeVar("B", bound=Batch, covariant=True)


class Sampling(ABC, Generic[B]):
    """Samples minibatches: a sampler draws indices of a ring of frames, at each of which a sample begins."""

    def __init__(self, ring: FrameRing, sampler: Sampler) -> None:
        self.ring, self.sampler = ring, sampler
        self._sampled_at: int | None = None
        """`rows_stored` when the latest minibatch was sampled."""

    @abstractmethod
    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> B:
        """Gather the samples that begin at these indices."""

    @abstractmethod
    def set_horizon(self, horizon: Horizon) -> None:
        """Set n and γ of the next minibatches."""

    @property
    @abstractmethod
    def rows_stored(self) -> int:
        """A number that changes whenever a row is stored."""

    @abstractmethod
    def sampled_indices(self) -> Int64[Tensor, "n"]:
        """Return the indices that the sampler must contain."""

    def steps_to_report(self) -> Int64[Tensor, "n"]:
        """Return the indices of the steps whose rewards and ends a report describes, those of all samples."""
        return self.sampled_indices()

    @abstractmethod
    def age_steps(self, index: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
        """Compute the number of steps that all environments have made since the step at each index."""

    @abstractmethod
    def step_share(self) -> float:
        """Compute the fraction of stored indices with a step; the others are the last frames of episodes."""

    @abstractmethod
    def state_dict(self) -> StateDict:
        """Return the complete state."""

    @abstractmethod
    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state; without rows, begin again with the newest frames."""

    def prepare(self, env_frames: int) -> None:
        """Update the sampler after rows were stored, with β at `env_frames`. Call it before `sample`."""
        self.sampler.prepare(env_frames)

    def sample(self) -> B:
        """Sample a minibatch."""
        self._sampled_at = self.rows_stored
        return self.minibatch(*self.sampler.draw())

    def sample_for_diagnostics(
        self, minibatches: int, *, env_frames: int, seed: int, batch_size: int | None = None
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Sample indices and weights of M minibatches from a stream of `seed`, for diagnostics.

        The sampler's random stream and priorities do not change. `batch_size`: that of training by default.
        """
        self.prepare(env_frames)
        size, device = (minibatches, batch_size or self.sampler.batch_size), self.sampler.device
        generator = torch.Generator(device=device).manual_seed(seed)
        unit = torch.rand(size, generator=generator, dtype=torch.float64, device=device)
        return self.sampler.indices_and_weights(unit)

    def update_priorities(self, batch: Batch, error: Float[Tensor, "B"]) -> None:
        """Update the priorities of the latest minibatch by its errors, before the next row is stored."""
        assert self._sampled_at == self.rows_stored, (
            "the replay has stored a row since the minibatch was sampled"
        )
        self.sampler.update_priorities(batch.index, error.to(batch.index.device))

    @property
    def num_transitions(self) -> int:
        """Number of transitions, or of sequences, that can be sampled."""
        return self.sampler.count

    def _continue_stream(self, state: StateDict) -> None:
        """Restore the sampler's random stream from a state without rows; earlier versions did not save it."""
        if "generator" in state:
            restore_generator(self.sampler.generator, state["generator"])

    def _refuse_other_indices(self) -> None:
        """Raise a `ValueError` unless the sampler contains exactly the indices at which samples begin."""
        expected, stored = self.sampled_indices(), self.sampler.valid_indices().cpu()
        if len(stored) != self.sampler.count or not torch.equal(stored.sort().values, expected.sort().values):
            raise ValueError("replay.sampler: its indices are not those of the samples in the replay")
