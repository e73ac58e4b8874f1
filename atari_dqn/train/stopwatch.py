"""Where training's time goes, measured around its parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

PARTS = ("act", "emulate", "store", "sample", "transfer", "learn", "optimize")
"""The parts that are measured; columns of throughput_log."""


class Stopwatch:
    """Adds up the seconds spent inside parts, and all seconds since the last `lap`.

    A part within another counts for itself alone, so that the parts never add up to too much.
    """

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._within = 0.0
        """Seconds of parts within the one that runs now."""
        self._lap_began = time.perf_counter()
        self.synchronize: Callable[[], None] = lambda: None
        """Called before a part ends. A device that works on its own is waited for here, if at all."""

    def part(self, name: str) -> Part:
        """Count the block's time under a part."""
        return Part(self, name)

    def add(self, name: str, seconds: float, within_outer: float) -> None:
        """Add the time of a part that ended, less that of the parts within it."""
        self._seconds[name] += seconds - self._within
        self._within = within_outer + seconds

    def enter(self) -> float:
        """Begin a part; give the time of the parts within the outer one so far."""
        within_outer, self._within = self._within, 0.0
        return within_outer

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the block's time out of the lap: it is not training."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._lap_began += time.perf_counter() - began

    def lap(self) -> tuple[float, dict[str, float]]:
        """Give the seconds since the last lap, in all and by part, and begin the next."""
        now = time.perf_counter()
        total, self._lap_began = now - self._lap_began, now
        parts = dict(self._seconds)
        self._seconds = dict.fromkeys(parts, 0.0)
        return total, parts


class Part:
    """One measured block."""

    __slots__ = ("_began", "_name", "_stopwatch", "_within_outer")

    def __init__(self, stopwatch: Stopwatch, name: str) -> None:
        self._stopwatch, self._name = stopwatch, name

    def __enter__(self) -> None:
        self._within_outer = self._stopwatch.enter()
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopwatch.synchronize()
        self._stopwatch.add(self._name, time.perf_counter() - self._began, self._within_outer)
