"""Measure the time of the parts of training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

PARTS = ("act", "emulate", "store", "sample", "transfer", "learn", "optimize")
"""The parts that are measured; columns of throughput_log."""


class Stopwatch:
    """Accumulates the seconds of each part, and measures the seconds since the last `lap`.

    The time of a nested part does not count for the outer one, so that each second is counted once.
    """

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._within = 0.0
        """Seconds of the parts nested in the current one."""
        self._lap_began = time.perf_counter()
        self.synchronize: Callable[[], None] = lambda: None
        """Called before a part ends; replace it by a function that waits for an asynchronous device."""

    def part(self, name: str) -> Part:
        """Create a context manager that measures its block as a part."""
        return Part(self, name)

    def add(self, name: str, seconds: float, within_outer: float) -> None:
        """Add the time of a part that ended, without that of its nested parts."""
        self._seconds[name] += seconds - self._within
        self._within = within_outer + seconds

    def enter(self) -> float:
        """Begin a part, and return the time of the parts nested in the outer one so far."""
        within_outer, self._within = self._within, 0.0
        return within_outer

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of the block, which is not training, from the lap."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._lap_began += time.perf_counter() - began

    def lap(self) -> tuple[float, dict[str, float]]:
        """Return the seconds since the last lap, in total and by part, and begin the next lap."""
        now = time.perf_counter()
        total, self._lap_began = now - self._lap_began, now
        parts = dict(self._seconds)
        self._seconds = dict.fromkeys(parts, 0.0)
        return total, parts


class Part:
    """A context manager that measures one block."""

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
