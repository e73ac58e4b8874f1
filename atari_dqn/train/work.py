"""The eager implementation of `assembly.acceleration.Work`; `fast` has one with CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable


class Eager:
    """Runs a function eagerly, operation by operation."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def run(self, times: int = 1) -> None:
        """Run the function `times` times."""
        for _ in range(times):
            self._function()

    def forget(self) -> None:
        """Do nothing, because nothing was captured."""
