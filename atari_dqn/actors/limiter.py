"""The limiter, which holds the ratio of samples to inserted steps, in both directions.

Its semantics are those of `SampleToInsertRatio` in Reverb, Cassirer et al. (2021). With N inserts and S
samples, the error is

    e = (N − min_size) · samples_per_insert − S

An insert must leave e at most the buffer, a sample must leave it at least minus the buffer, and nothing is
sampled before there are `min_size` inserts:

    −buffer             0             +buffer
       |  samples wait  |  inserts wait  |
"""

from __future__ import annotations

from atari_dqn.types import StateDict


class Limiter:
    """Counts inserts and samples, and says which are allowed. It belongs to one thread."""

    def __init__(self, *, samples_per_insert: float, min_size: int, error_buffer: float) -> None:
        self._samples_per_insert, self._min_size = samples_per_insert, min_size
        self._error_buffer = error_buffer
        self.inserts = self.samples = 0

    def can_insert(self, count: int) -> bool:
        """Return whether `count` inserts are allowed now."""
        inserts = self.inserts + count
        return inserts <= self._min_size or self._error(inserts, self.samples) <= self._error_buffer

    def can_sample(self, count: int) -> bool:
        """Return whether `count` samples are allowed now."""
        if self.inserts < self._min_size:
            return False
        return self._error(self.inserts, self.samples + count) >= -self._error_buffer

    def insert(self, count: int) -> None:
        """Count inserts."""
        self.inserts += count

    def sample(self, count: int) -> None:
        """Count samples."""
        self.samples += count

    def refill(self) -> None:
        """Count from 0, because the replay is now empty: nothing is sampled before `min_size` inserts."""
        self.inserts = self.samples = 0

    def state_dict(self) -> StateDict:
        """Return the counts."""
        return {"inserts": self.inserts, "samples": self.samples}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the counts."""
        self.inserts, self.samples = state["inserts"], state["samples"]

    def _error(self, inserts: int, samples: int) -> float:
        return (inserts - self._min_size) * self._samples_per_insert - samples
