"""Work of a device that runs eagerly; `fast` has an implementation with CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Work(Protocol):
    """Work that reads and writes the same tensors each time."""

    def run(self, times: int = 1) -> None:
        """Run the work `times` times in sequence."""
        ...

    def forget(self) -> None:
        """Discard what was recorded, because some of its tensors were replaced."""
        ...


class Eager:
    """Runs the work eagerly, operation by operation."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def run(self, times: int = 1) -> None:
        """Run the work `times` times."""
        for _ in range(times):
            self._function()

    def forget(self) -> None:
        """Do nothing, because nothing is recorded."""
