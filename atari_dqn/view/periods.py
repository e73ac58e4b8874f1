"""Join the rows of two tables into one record per period, and estimate speed and remaining time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping

from atari_dqn.telemetry.events import Event, Row, Value

_TABLES = ("update_log", "throughput_log")
_WINDOW_PERIODS = 250
"""A million frames at 1,000 steps a period: long enough to include evaluations."""
_SPEED_SECONDS = 10.0


class Periods:
    """Join the two rows that end a period, one of each table, into one record; their order is free."""

    def __init__(self) -> None:
        self._rows: dict[str, Mapping[str, Value]] = {}

    def add(self, event: Event) -> dict[str, float] | None:
        """Add a row; return the joined record if both rows of the step are there, else None."""
        if not isinstance(event, Row) or event.table not in _TABLES:
            return None
        self._rows[event.table] = event.values
        rows = [self._rows.get(table) for table in _TABLES]
        if any(row is None or row["step"] != event.values["step"] for row in rows):
            return None
        return {name: float(value) for row in rows if row for name, value in row.items()}


class RemainingTime:
    """Estimate the remaining time from the latest periods in which the run learned.

    The prefill is many times faster and is left out; evaluations and saving are included.
    """

    def __init__(self, total_frames: int) -> None:
        self._total_frames = total_frames
        self._points: deque[tuple[float, float]] = deque(maxlen=_WINDOW_PERIODS)

    def add(self, record: Mapping[str, float]) -> None:
        """Add a period's record."""
        if record["updates"]:
            self._points.append((record["env_frames"], record["elapsed_seconds"]))

    def seconds(self, env_frames: float | None = None) -> float | None:
        """Estimate the time left at a frame, by default the latest period's.

        None before two such periods, and where their frames do not increase, as in a damaged table.
        """
        if not self._points:
            return None
        (first_frames, first_seconds), (frames, seconds) = self._points[0], self._points[-1]
        if not frames > first_frames:
            return None
        left = max(0.0, self._total_frames - max(frames, env_frames or 0.0))
        return left * (seconds - first_seconds) / (frames - first_frames)


class Speed:
    """Measure emulator frames per second over the latest seconds, from readings of a counter."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._points: deque[tuple[float, int]] = deque()

    def add(self, env_frames: int) -> None:
        """Add a reading of the counter."""
        now = self._now()
        while len(self._points) > 1 and self._points[1][0] <= now - _SPEED_SECONDS:
            self._points.popleft()
        self._points.append((now, env_frames))

    def restart(self) -> None:
        """Drop all readings, when another phase begins."""
        self._points.clear()

    def frames_per_second(self) -> float:
        """Compute the speed; NaN before two readings."""
        if len(self._points) < 2:
            return math.nan
        (first_seconds, first_frames), (seconds, frames) = self._points[0], self._points[-1]
        return (frames - first_frames) / (seconds - first_seconds) if seconds > first_seconds else math.nan
