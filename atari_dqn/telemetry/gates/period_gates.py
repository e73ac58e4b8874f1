"""Gates that look once a period."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median

from atari_dqn.telemetry.gates.gate import Gate
from atari_dqn.types import StateDict

WINDOW_PERIODS = 100
FEWEST_PERIODS = 10
"""Periods that a median is taken of: the latest, and not before there are so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodRecord:
    """What is looked at once a period."""

    greedy_counts: tuple[int, ...]
    """How often each action was the greedy one, since the run began."""
    dead_unit_share: float | None
    """Share of hidden units that were 0 for a whole minibatch; None before learning."""
    updates_per_second: float
    free_disk_bytes: int


class ActionsGate(Gate[PeriodRecord]):
    """Warns where one action was more than `max_share` of the greedy ones for `patience` periods in a row."""

    name = "actions"

    def __init__(self, *, max_share: float, patience: int) -> None:
        super().__init__(threshold=max_share, patience=patience)
        self._counts: tuple[int, ...] = ()

    def measure(self, seen: PeriodRecord) -> float | None:
        """Return the share of the period's most frequent greedy action."""
        before = self._counts or (0,) * len(seen.greedy_counts)
        counts = [now - then for now, then in zip(seen.greedy_counts, before, strict=True)]
        self._counts = seen.greedy_counts
        return max(counts) / sum(counts) if sum(counts) else None

    def describe(self, value: float) -> str:
        """Return what is wrong."""
        return f"{value:.1%} of the greedy actions are the same one"

    def state_dict(self) -> StateDict:
        """Return the state and the counts at the period's beginning."""
        return {**super().state_dict(), "counts": list(self._counts)}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state."""
        super().load_state_dict(state)
        self._counts = tuple(state["counts"])


class DeadUnitsGate(Gate[PeriodRecord]):
    """Warns where more than `max_share` of the hidden units are 0 for a whole minibatch."""

    name = "dead_units"

    def __init__(self, *, max_share: float) -> None:
        super().__init__(threshold=max_share)

    def measure(self, seen: PeriodRecord) -> float | None:
        """Return the share."""
        return seen.dead_unit_share

    def describe(self, value: float) -> str:
        """Return what is wrong."""
        return f"{value:.1%} of the hidden units are 0 for a whole minibatch"


class ThroughputGate(Gate[PeriodRecord]):
    """Warns below `min_share` of the run's own median of updates a second for `patience` periods in a row.

    Periods without updates are left out. The median is of the latest periods, so that a run that has moved to
    a slower machine is `ok` again in the end. Nothing of it may reach what must repeat: it is about time.
    """

    name = "throughput"

    def __init__(self, *, min_share: float, patience: int) -> None:
        super().__init__(threshold=min_share, patience=patience)
        self._rates: deque[float] = deque(maxlen=WINDOW_PERIODS)

    def measure(self, seen: PeriodRecord) -> float | None:
        """Return the period's share of the median of those before it."""
        if not seen.updates_per_second:
            return None
        earlier = median(self._rates) if len(self._rates) >= FEWEST_PERIODS else None
        self._rates.append(seen.updates_per_second)
        return seen.updates_per_second / earlier if earlier else None

    def is_wrong(self, value: float) -> bool:
        """Return whether the share is too small."""
        return value < self.threshold

    def describe(self, value: float) -> str:
        """Return what is wrong."""
        return f"updates are made at {value:.0%} of the run's own median speed"

    def state_dict(self) -> StateDict:
        """Return the state and the rates of the latest periods."""
        return {**super().state_dict(), "rates": list(self._rates)}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state."""
        super().load_state_dict(state)
        self._rates = deque(state["rates"], maxlen=WINDOW_PERIODS)


class DiskGate(Gate[PeriodRecord]):
    """Warns where the run's disk has less than `min_free_bytes` left."""

    name = "disk"

    def __init__(self, *, min_free_bytes: int) -> None:
        super().__init__(threshold=min_free_bytes)

    def measure(self, seen: PeriodRecord) -> float:
        """Return the bytes that are free."""
        return seen.free_disk_bytes

    def is_wrong(self, value: float) -> bool:
        """Return whether they are too few."""
        return value < self.threshold

    def describe(self, value: float) -> str:
        """Return what is wrong."""
        return f"{value / 1e9:.1f} GB are free, less than {self.threshold / 1e9:.1f}"
