"""Run one function at a time in a background thread while training continues."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from atari_dqn.errors import InfrastructureError

R = TypeVar("R")

_NICENESS = 10


class CancelledError(Exception):
    """The background work was cancelled."""


class BackgroundWork(Generic[R]):
    """Runs a function in a thread of low priority; `finish` returns its result or raises its exception."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._cancelled = threading.Event()
        self._result: R | None = None
        self._error: BaseException | None = None

    def begin(self, work: Callable[[], R]) -> None:
        """Start a function; `InfrastructureError` if the system starts no thread.

        `finish` must have been called for the previous one.
        """
        assert self._thread is None, "one piece of work at a time"
        # A daemon thread, so that a process that must exit at once does not wait for a slow disk.
        thread = threading.Thread(target=self._run, args=[work], name="checkpoint writer", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise InfrastructureError(
                f"no thread could be started to write a checkpoint ({error}); the limit on the processes of "
                "a user may be reached (`ulimit -u`)"
            ) from error
        self._thread = thread

    @property
    def done(self) -> bool:
        """Whether the function has ended, so that `finish` returns at once."""
        return self._thread is not None and not self._thread.is_alive()

    def finish(self) -> R | None:
        """Wait for the function, return its result or raise its exception; None if none was started."""
        if self._thread is None:
            return None
        self._thread.join()
        result, error = self._result, self._error
        self._thread = self._result = self._error = None
        if error is not None:
            raise error
        return result

    def wait(self) -> None:
        """Wait for the function; `finish` returns its result afterwards."""
        if self._thread is not None:
            self._thread.join()

    def cancel(self, *, wait_seconds: float) -> None:
        """Request that the function ends early, and wait up to `wait_seconds` for it."""
        self._cancelled.set()
        if self._thread is not None:
            self._thread.join(wait_seconds)

    def check_cancelled(self) -> None:
        """Raise `CancelledError` if `cancel` was called. The function calls this at intervals."""
        if self._cancelled.is_set():
            raise CancelledError

    def _run(self, work: Callable[[], R]) -> None:
        _lower_priority()
        try:
            self._result = work()
        except BaseException as error:  # `finish` raises it
            self._error = error


def _lower_priority() -> None:
    """Lower the priority of this thread, if the system has priorities of threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
