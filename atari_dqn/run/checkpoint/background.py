"""One piece of work at a time, done by a thread while training goes on."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

R = TypeVar("R")

_NICENESS = 10


class GivenUpError(Exception):
    """Nobody wants the work's result any longer."""


class Background(Generic[R]):
    """Does work in a thread that gives way to training. Its result, or its error, comes out of `finish`."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._given_up = threading.Event()
        self._result: R | None = None
        self._error: BaseException | None = None

    def begin(self, work: Callable[[], R]) -> None:
        """Start work. The work before must be finished."""
        assert self._thread is None, "one piece of work at a time"
        # A daemon: a process that has to end at once does not wait for a slow disk.
        self._thread = threading.Thread(target=self._do, args=[work], name="checkpoint writer", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether work that began has ended, so that `finish` does not wait."""
        return self._thread is not None and not self._thread.is_alive()

    def finish(self) -> R | None:
        """Wait for the work that began, return its result or raise its error; None if none began."""
        if self._thread is None:
            return None
        self._thread.join()
        result, error = self._result, self._error
        self._thread = self._result = self._error = None
        if error is not None:
            raise error
        return result

    def wait(self) -> None:
        """Wait for the work that began; `finish` has what came of it."""
        if self._thread is not None:
            self._thread.join()

    def give_up(self, *, wait_seconds: float) -> None:
        """Ask the work to end without a result, and wait a little for it."""
        self._given_up.set()
        if self._thread is not None:
            self._thread.join(wait_seconds)

    def check_wanted(self) -> None:
        """Raise `GivenUpError` once the work has been given up. The work calls it now and then."""
        if self._given_up.is_set():
            raise GivenUpError

    def _do(self, work: Callable[[], R]) -> None:
        _give_way()
        try:
            self._result = work()
        except BaseException as error:  # `finish` raises it
            self._error = error


def _give_way() -> None:
    """Lower this thread's priority, where the system gives threads their own."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
