"""Start child processes within limits, end them with their parent, and protect code from Ctrl-C."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from atari_dqn.errors import UnavailableError

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals with which a terminal or a scheduler ends a whole process group."""
_PR_SET_PDEATHSIG = 1
"""Option of `prctl(2)` that sets the signal sent to this process when its parent thread ends."""


def start_child(target: Callable[..., None], *arguments: Any, name: str) -> tuple[SpawnProcess, Connection]:
    """Start a process that calls `target` with its end of a pipe, the process to end with, and arguments.

    Return the process, and this end of the pipe. The process is spawned, not forked, so that it has no copies
    of this one's threads, locks or CUDA context.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(
        target=target, args=(theirs, parent_to_end_with(), *arguments), name=name, daemon=True
    )
    with interrupts_blocked():  # a terminal signals the whole process group; only this process reacts
        process.start()
    theirs.close()
    return process, ours


def own_command(module: str) -> list[str]:
    """Return the command that runs a module of this package in another process.

    `python -m` looks in the current folder first, which may hold another `atari_dqn`, or a `random.py`. With
    -P it does not, unless this process itself has the package from there.
    """
    try:
        is_here = Path(__file__).parents[2].samefile(os.curdir)
    except OSError:  # a folder that this user may not search, or a package that is in no folder
        is_here = False
    return [sys.executable, *([] if is_here else ["-P"]), "-m", module]


def signal_name(number: int) -> str:
    """Return the name of a signal: `SIGKILL`; of one without a name, as real-time signals are, its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def ignore_ending_signals() -> None:
    """Ignore the signals to the process group, to which only the process that started this one reacts."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def parent_to_end_with() -> int | None:
    """Return the process id that a child passes to `end_with_parent`, or None.

    The kernel signals the child when the thread that started it ends, not when the process does. The id is
    therefore returned only in the main thread, which ends with the process.
    """
    return os.getpid() if threading.current_thread() is threading.main_thread() else None


def end_with_parent(parent: int | None) -> None:
    """Let the kernel kill this process when `parent` ends, even if this process is stopped or hangs.

    On systems other than Linux, and if `parent` is None, this does nothing.
    """
    if parent is None or sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before prctl was called
        os._exit(1)


def continue_process(process: SpawnProcess) -> None:
    """Continue a process that was started if it is stopped (SIGSTOP)."""
    assert process.pid is not None
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGCONT)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block SIGINT until the block of code ends; processes that are started in it inherit the blocked signal.

    An extension module that is interrupted during its import may suppress the interrupt and stay unusable.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def within_limits(processes: str, *, key: str) -> Iterator[None]:
    """Convert an `OSError` about too many processes, files or mappings into an `UnavailableError`.

    `processes`: how many of what are started. `key`: the key of the spec that sets their number.
    """
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"cannot start {processes}: {os.strerror(error.errno or 0).lower()}; "
            f"lower {key}, or raise the limit (ulimit -a shows it)"
        ) from error
