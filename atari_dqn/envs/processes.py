"""Child processes that end with their parent, and blocks of code that Ctrl-C does not interrupt."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1
"""Of `prctl(2)`: the signal that the kernel sends once the thread that started this process has ended."""


def parent_to_end_with() -> int | None:
    """Return what a child is to give to `end_with_parent`: this process, or None.

    The kernel watches the thread that starts a child and not its process, so that only the main thread,
    which ends with the process, may be followed.
    """
    return os.getpid() if threading.current_thread() is threading.main_thread() else None


def end_with_parent(parent: int | None) -> None:
    """Have this process killed as soon as `parent` ends, even if it is stopped or hangs by then.

    Linux alone can do so; elsewhere, and for None, this does nothing.
    """
    if parent is None or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before prctl was called
        os._exit(1)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Hold SIGINT back until the block ends; a process that is started inside ignores it from its start.

    An extension module that is interrupted while it is imported may swallow that, and be broken from then on.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
