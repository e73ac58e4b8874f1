"""Failure gates that check once every report period."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median

from atari_dqn.telemetry.gates.gate import Gate
from atari_dqn.types import StateDict

WINDOW_PERIODS = 100
FEWEST_PERIODS = 10
"""A median is taken over the latest `WINDOW_PERIODS`, and only once there are `FEWEST_PERIODS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRecord:
    """The measurements of a period."""

    greedy_counts: tuple[int, ...]
    """Number of times each action was greedy since the run began."""
    dead_unit_share: float | None
    """Share of hidden units that were 0 for a whole minibatch; None before the first update."""
    updates_per_second: float
    free_disk_bytes: int


class ActionsGate(Gate[PeriodRecord]):
    """Warns if one action was more than `max_share` of the greedy ones for `patience` periods in a row."""

    name = "actions"

    def __init__(self, *, max_share: float, patience: int) -> None:
        super().__init__(threshold=max_share, patience=patience)
        self._counts: tuple[int, ...] = ()

    def measure(self, record: PeriodRecord) -> float | None:
        """Compute the share of the most frequent greedy action of the period."""
        before = self._counts or (0,) * len(record.greedy_counts)
        counts = [now - then for now, then in zip(record.greedy_counts, before, strict=True)]
        self._counts = record.greedy_counts
        return max(counts) / sum(counts) if sum(counts) else None

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"{value:.1%} of the greedy actions are the same one"

    def state_dict(self) -> StateDict:
        """Return the state with the action counts at the beginning of the period."""
        return {**super().state_dict(), "counts": list(self._counts)}

    def load_state_dict(self, state: StateDict) -> None:
        """Load a state."""
        super().load_state_dict(state)
        self._counts = tuple(state["counts"])


class DeadUnitsGate(Gate[PeriodRecord]):
    """Warns if more than `max_share` of the hidden units are 0 for a whole minibatch."""

    name = "dead_units"

    def __init__(self, *, max_share: float) -> None:
        super().__init__(threshold=max_share)

    def measure(self, record: PeriodRecord) -> float | None:
        """Return the share of dead units."""
        return record.dead_unit_share

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"{value:.1%} of the hidden units are 0 for a whole minibatch"


class ThroughputGate(Gate[PeriodRecord]):
    """Warns if updates per second are below `min_share` of the run's median for `patience` periods in a row.

    Periods without updates are ignored. The median is over the latest periods, so that a run that moved to a
    slower machine eventually returns to `ok`. It depends on time, so nothing reproducible may depend on it.
    """

    name = "throughput"

    def __init__(self, *, min_share: float, patience: int) -> None:
        super().__init__(threshold=min_share, patience=patience)
        self._rates: deque[float] = deque(maxlen=WINDOW_PERIODS)

    def measure(self, record: PeriodRecord) -> float | None:
        """Compute updates per second as a share of the median of earlier periods."""
        if not record.updates_per_second:
            return None
        earlier = median(self._rates) if len(self._rates) >= FEWEST_PERIODS else None
        self._rates.append(record.updates_per_second)
        return record.updates_per_second / earlier if earlier else None

    def is_wrong(self, value: float) -> bool:
        """Return whether the share is too small."""
        return value < self.threshold

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"updates are made at {value:.0%} of the run's own median speed"

    def state_dict(self) -> StateDict:
        """Return the state with the updates per second of the latest periods."""
        return {**super().state_dict(), "rates": list(self._rates)}

    def load_state_dict(self, state: StateDict) -> None:
        """Load a state."""
        super().load_state_dict(state)
        self._rates = deque(state["rates"], maxlen=WINDOW_PERIODS)


class DiskGate(Gate[PeriodRecord]):
    """Warns if the disk of the run has less than `min_free_bytes` left."""

    name = "disk"

    def __init__(self, *, min_free_bytes: int) -> None:
        super().__init__(threshold=min_free_bytes)

    def measure(self, record: PeriodRecord) -> float:
        """Return the number of free bytes."""
        return record.free_disk_bytes

    def is_wrong(self, value: float) -> bool:
        """Return whether too few bytes are free."""
        return value < self.threshold

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"{value / 1e9:.1f} GB are free, less than {self.threshold / 1e9:.1f}"
