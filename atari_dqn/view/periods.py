"""What both views make of the tables: one record a period, and the time that is left."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping

from atari_dqn.telemetry.events import Event, Row, Value

_TABLES = ("update_log", "throughput_log")
_WINDOW_PERIODS = 250
"""At 1,000 steps a period a million frames: long enough to hold a share of the evaluations."""
_SPEED_SECONDS = 10.0


class Periods:
    """Joins the rows that end a period, one of each table, into one record, whichever comes first."""

    def __init__(self) -> None:
        self._rows: dict[str, Mapping[str, Value]] = {}

    def add(self, event: Event) -> dict[str, float] | None:
        """Return the joined record once both rows of a step are there, else None."""
        if not isinstance(event, Row) or event.table not in _TABLES:
            return None
        self._rows[event.table] = event.values
        rows = [self._rows.get(table) for table in _TABLES]
        if any(row is None or row["step"] != event.values["step"] for row in rows):
            return None
        return {name: float(value) for row in rows if row for name, value in row.items()}


class RemainingTime:
    """Estimates the time that is left from the latest periods in which the run learned.

    The prefill is left out, being many times faster; evaluations and saving count, for they will come again.
    """

    def __init__(self, total_frames: int) -> None:
        self._total_frames = total_frames
        self._points: deque[tuple[float, float]] = deque(maxlen=_WINDOW_PERIODS)

    def add(self, record: Mapping[str, float]) -> None:
        """Take a period's record."""
        if record["updates"]:
            self._points.append((record["env_frames"], record["elapsed_seconds"]))

    def seconds(self, env_frames: float | None = None) -> float | None:
        """Return the estimate at a frame, by default the latest period's; None until two were learned in."""
        if len(self._points) < 2:
            return None
        (first_frames, first_seconds), (frames, seconds) = self._points[0], self._points[-1]
        left = max(0.0, self._total_frames - max(frames, env_frames or 0.0))
        return left * (seconds - first_seconds) / (frames - first_frames)


class Speed:
    """Emulator frames a second over the latest seconds, from counters that are read now and then."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._points: deque[tuple[float, int]] = deque()

    def add(self, env_frames: int) -> None:
        """Take how far the run is now."""
        now = self._now()
        while len(self._points) > 1 and self._points[1][0] <= now - _SPEED_SECONDS:
            self._points.popleft()
        self._points.append((now, env_frames))

    def restart(self) -> None:
        """Forget what was: the run does something of another speed now."""
        self._points.clear()

    def frames_per_second(self) -> float:
        """Return the speed; NaN until the counters have been read twice."""
        if len(self._points) < 2:
            return math.nan
        (first_seconds, first_frames), (seconds, frames) = self._points[0], self._points[-1]
        return (frames - first_frames) / (seconds - first_seconds) if seconds > first_seconds else math.nan
