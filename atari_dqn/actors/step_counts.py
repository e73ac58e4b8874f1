"""The steps that actors have played, in shared memory, which outlives an actor that ends."""

from __future__ import annotations

import multiprocessing
from typing import Any


class StepCounts:
    """A counter for each actor, which it alone changes, over all of its incarnations.

    Processes get it as an argument when they are started.
    """

    def __init__(self, actors: int) -> None:
        self._counts: Any = multiprocessing.get_context("spawn").RawArray("q", actors)

    def add(self, actor: int, steps: int) -> None:
        """Add steps that an actor has played."""
        self._counts[actor] += steps

    def played(self, actor: int) -> int:
        """Return the number of steps that an actor has played."""
        return int(self._counts[actor])
