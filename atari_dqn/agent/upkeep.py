"""Work between two updates of the networks."""

from __future__ import annotations

from typing import Protocol


class Upkeep(Protocol):
    """Work that is due after some of the updates. It has no state: the number of updates determines it."""

    def updates_until(self, updates: int, /) -> int:
        """Compute how many updates, after `updates` of them, are made before the next work; at least 1."""
        ...

    def after(self, updates: int, /) -> None:
        """Do the work that is due after `updates` updates; most often there is none."""
        ...
