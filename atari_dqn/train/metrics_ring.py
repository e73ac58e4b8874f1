"""Store the minibatches and metrics of the latest updates in tables on the learner's device.

Each update writes a row, whose number is counted on the device, so that updates replayed from a CUDA graph
write theirs as well. The host reads many rows at once, when their copies have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.agent.losses import UPDATE_METRICS
from atari_dqn.minibatch import Batch
from atari_dqn.replay.transfer import host_copy

RECENT_UPDATES = 1_000
"""Smallest number of updates whose metrics and minibatch indices are stored."""


class MetricsRing:
    """A ring buffer of rows, one for each update. B minibatch, M metrics."""

    def __init__(self, *, batch_size: int, device: torch.device, updates_per_iteration: int = 1) -> None:
        self.count = 0
        """Number of updates of this process so far, including those that the device has not finished."""
        self.arrived = 0
        """Number of updates whose metrics are on the host."""
        self._length = rows = max(RECENT_UPDATES, 2 * updates_per_iteration)
        self._place = torch.zeros(1, dtype=torch.int64, device=device)
        self._index = torch.zeros((rows, batch_size), dtype=torch.int64, device=device)
        self._weight = torch.zeros((rows, batch_size), device=device)
        self._measured = torch.zeros((rows, len(UPDATE_METRICS)), device=device)
        self._on_host = host_copy(self._measured)
        self._values = self._on_host.wait()

    def write(self, batch: Batch, metrics: Mapping[str, Tensor]) -> None:
        """Write the row of an update, on the device alone."""
        measured = torch.stack([metrics[name] for name in UPDATE_METRICS])
        self._measured.index_copy_(0, self._place, measured[None])
        self._index.index_copy_(0, self._place, batch.index[None])
        self._weight.index_copy_(0, self._place, batch.weight[None])
        self._place.add_(1).remainder_(self._length)

    def mutated_tensors(self) -> list[Tensor]:
        """Return the tensors that `write` changes."""
        return [self._place, self._measured, self._index, self._weight]

    def count_updates(self, updates: int) -> None:
        """Count updates that were queued on the device, and start copying their metrics to the host."""
        self.count += updates
        self._on_host.fetch()
        # the host gets far ahead only while every environment acts at random, and then waits here
        if self._on_host.is_on_host or self.count - self.arrived > self._length // 2:
            self.wait()

    def wait(self) -> None:
        """Wait until the metrics of every update so far are on the host."""
        self._values = self._on_host.wait()
        self.arrived = self.count

    def rows(self, first: int, stop: int) -> Float[np.ndarray, "n M"]:
        """Return the metrics of the updates from `first` to `stop` − 1."""
        assert self.count - self._length <= first <= stop <= self.arrived
        return self._values[np.arange(first, stop) % self._length]

    def minibatch(self, updates_ago: int) -> tuple[Int64[Tensor, "B"], Float[Tensor, "B"]] | None:
        """Return the indices and weights of a recent update; None if it is no longer stored."""
        if updates_ago >= min(self.count, self._length):
            return None
        row = (self.count - 1 - updates_ago) % self._length
        return self._index[row].clone(), self._weight[row].clone()

    def reader(self) -> Reader:
        """Create a reader of all later updates."""
        return Reader(self)


class Reader:
    """Reads the metrics of every update once, in order."""

    def __init__(self, ring: MetricsRing) -> None:
        self._ring = ring
        self._next = ring.count

    def arrived(self) -> Float[np.ndarray, "n M"]:
        """Return the rows that are on the host and were not read yet."""
        first, self._next = self._next, self._ring.arrived
        return self._ring.rows(first, self._next)

    def all(self) -> Float[np.ndarray, "n M"]:
        """Wait for all updates so far, and return the rows that were not read yet."""
        self._ring.wait()
        return self.arrived()
