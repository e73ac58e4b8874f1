"""Where training's time goes, measured around the loop's parts so that the loop itself holds no clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Stopwatch:
    """Adds up the seconds spent inside wrapped functions, by part, and all seconds since the last `lap`.

    A part called from within another counts for itself alone, so that the parts never add up to too much.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._within = 0.0
        """Seconds of parts called from within the one that runs now."""
        self._lap_began = time.perf_counter()
        self.synchronize: Callable[[], None] = lambda: None
        """Called before a part ends. A device that works on its own is waited for here, if at all."""

    def timed(self, part: str, function: Callable[P, R]) -> Callable[P, R]:
        """Return `function`, its time counted under `part`."""
        self._seconds[part] = self._seconds.get(part, 0.0)

        def measured(*args: P.args, **kwargs: P.kwargs) -> R:
            within_outer, self._within = self._within, 0.0
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.synchronize()
                spent = time.perf_counter() - began
                self._seconds[part] += spent - self._within
                self._within = within_outer + spent

        return measured

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the block's time out of the lap: it is not training."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._lap_began += time.perf_counter() - began

    def lap(self) -> tuple[float, dict[str, float]]:
        """Return the seconds since the last lap, in all and by part, and begin the next."""
        now = time.perf_counter()
        total, self._lap_began = now - self._lap_began, now
        parts = dict(self._seconds)
        self._seconds = dict.fromkeys(parts, 0.0)
        return total, parts
