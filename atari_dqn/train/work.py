"""Work of a device, done as it is written. `fast` may play it from recordings instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Work(Protocol):
    """Work that reads and writes the same tensors each time."""

    def run(self, times: int = 1) -> None:
        """Do it so many times, one after the other."""
        ...

    def forget(self) -> None:
        """Take note that some of its tensors were replaced by others."""
        ...


class Eager:
    """Does the work as it is written: asks the device for one operation after the other."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def run(self, times: int = 1) -> None:
        """Do it so many times."""
        for _ in range(times):
            self._function()

    def forget(self) -> None:
        """Do nothing: nothing is kept."""
