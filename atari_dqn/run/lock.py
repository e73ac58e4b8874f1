"""The lock of a run directory: one process at a time writes to a run, and the file says which one."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import exists
from atari_dqn.files.failures import reading, writing
from atari_dqn.run.leases.owner import Owner

LOCK = ".lock"
_TRIES = 25
_PAUSE_SECONDS = 0.02
_MOST_BYTES = 4096
_READ_TRIES, _READ_PAUSE_SECONDS = 5, 0.2


class RunLockedError(UserError):
    """Another process holds the lock of a run: it trains the run, or reads it, as `dqn verify` does."""

    exit_code = 6


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Lock a run for writing; raise `RunLockedError` while another (living) process holds it."""
    with _locked_file(run, _file(run)) as file:
        _leave_name(file)
        yield


def _locked_file(run: Path, path: Path) -> IO[bytes]:
    """Open and lock the file at a path; again if a takeover has removed it before it was locked."""
    while True:
        with writing(path), ExitStack() as stack:
            file = stack.enter_context(path.open("ab", buffering=0))
            _lock(run, file, fcntl.LOCK_EX)
            if exists(path) and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                stack.pop_all()
                return file


def _leave_name(file: IO[bytes]) -> None:
    """Write who holds the lock, unless the disk is full, which must not prevent a resume."""
    with suppress(OSError):
        file.truncate(0)
        file.write(msgspec.json.encode(Owner.current()))


@contextmanager
def locked_anew(run: Path) -> Iterator[None]:
    """Replace the lock file of a run by a new one, and hold its lock.

    The lock of a process that held the former one, and cannot be ended, belongs to a removed file then.
    """
    path = _file(run)
    partial = path.with_name(f".{LOCK}.{secrets.token_hex(4)}.partial")
    with ExitStack() as stack:
        with writing(path):
            file = stack.enter_context(partial.open("xb", buffering=0))
            stack.callback(partial.unlink, missing_ok=True)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _leave_name(file)
            partial.replace(path)
        yield


@contextmanager
def locked_for_reading(run: Path) -> Iterator[None]:
    """Lock a run for reading, without writing; raise `RunLockedError` while another process runs it."""
    with _existing_locked(run, "rb", fcntl.LOCK_SH):
        yield


@contextmanager
def _existing_locked(run: Path, mode: str, kind: int) -> Iterator[None]:
    """Lock a run by its lock file, if it has one."""
    path = _file(run)
    if not exists(path):
        yield
        return
    with reading(path):
        file = path.open(mode)
    with file:
        with reading(path):
            _lock(run, file, kind)
        yield


def is_locked(run: Path) -> bool:
    """Return whether another process holds the lock for writing.

    A lock that cannot be read, as when a disk fails for a moment, is tried again for a second.
    """
    return _is_refused(run, "rb", fcntl.LOCK_SH)


def is_in_use(run: Path) -> bool:
    """Return whether another process holds the lock, even for reading; tries as `is_locked`."""
    if not os.access(run / LOCK, os.W_OK):  # a process that trains the run names the error
        return is_locked(run)
    return _is_refused(run, "r+b", fcntl.LOCK_EX)  # a network file system locks only what may be written


def _is_refused(run: Path, mode: str, kind: int) -> bool:
    for _ in range(_READ_TRIES):
        with suppress(UserError):
            return _is_refused_now(run, mode, kind)
        time.sleep(_READ_PAUSE_SECONDS)
    return _is_refused_now(run, mode, kind)


def _is_refused_now(run: Path, mode: str, kind: int) -> bool:
    try:
        with _existing_locked(run, mode, kind):
            return False
    except RunLockedError:
        return True


def recorded_holder(run: Path) -> Owner | None:
    """Read who locked a run for writing last; None if an earlier version did, which left no name."""
    with suppress(OSError, msgspec.MsgspecError), (run / LOCK).open("rb") as file:
        return msgspec.json.decode(file.read(_MOST_BYTES), type=Owner)
    return None


def _file(run: Path) -> Path:
    path = run / LOCK
    if path.is_fifo():  # opening it would block forever
        raise DamagedError(f"{path}: is a pipe; remove it")
    return path


def _lock(run: Path, file: IO[Any], kind: int) -> None:
    # For a moment a child of a killed process may still hold the lock.
    for _ in range(_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return
        time.sleep(_PAUSE_SECONDS)
    holder = recorded_holder(run)
    # A reader leaves no name, so that the one in the file may be of a process that has ended.
    who = "" if holder is None or holder.has_ended else f", {holder.pid} on {holder.host}"
    raise RunLockedError(f"{run} is in use by another process{who}; wait for it, or end it")
