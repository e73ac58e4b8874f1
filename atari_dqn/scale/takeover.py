"""Take a run over from an owner whose lease is stale, so that what is left of it cannot write to the run."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import time
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import fsync_file, is_file
from atari_dqn.files.failures import writing
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.lease import HeldLease, Lease
from atari_dqn.run.leases.owner import Owner, is_running
from atari_dqn.run.lock import RunLockedError, is_locked, locked_anew, recorded_holder
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.telemetry.columns import TABLES

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02


def take_over(run: RunDirectory, stale: Lease, held: HeldLease) -> None:
    """End the training of a stale lease if it is on this machine; otherwise detach it from the run's files.

    `held`: the lease that this process has taken over the stale one; it is renewed meanwhile. Once it is
    lost, for example to a third process while this one was suspended, no file of the run is replaced.

    On this machine the process group of the training is killed, even if it is suspended. A training on
    another machine cannot be reached. When it continues, it checks its lease before it writes; a row that it
    is appending, and its lock, then belong to removed files, because the logs are replaced by copies and the
    lock file by a new one. Meanwhile this process holds the lock of the new file, and that of the former one
    if it is free, so that no other process begins to write to a log that is being replaced. If a process
    other than the stale owner and its training holds the former lock for writing, such as a user's
    `dqn resume`, neither the logs nor the lock file are replaced.
    """
    if stale.owner.is_here:
        _kill(stale, held)
    elif run.path.is_dir():
        _detach(run, stale, held)


def release_ended(folder: SweepFolder, names: Collection[str]) -> None:
    """Kill what is left of the trainings of owners that have ended, and release their leases.

    `names`: runs that need no more training; leases of other runs are not changed. An owner that was killed
    could not release its leases.
    """
    for name, lease in folder.leases.current().items():
        if name in names and lease.owner.has_ended:
            held = folder.leases.take(name, Owner.current(), over=lease)
            if held is not None:
                try:
                    take_over(folder.run(name), lease, held)
                finally:
                    held.release()


def _kill(stale: Lease, held: HeldLease) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    due = time.monotonic() + held.lease.period_seconds
    while stale.process and is_running(stale.process, stale.process_started):
        with suppress(ProcessLookupError, PermissionError):  # another user's is named below
            os.killpg(stale.process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise UserError(
                f"{stale.name}: process {stale.process}, which trains it, does not end; end it and try again"
            )
        if time.monotonic() > due:
            due = time.monotonic() + held.lease.period_seconds
            held.beat()
        time.sleep(_PAUSE_SECONDS)


def _detach(run: RunDirectory, stale: Lease, held: HeldLease) -> None:
    with ExitStack() as stack:
        try:
            stack.enter_context(run.locked())
        except RunLockedError:  # a reader, such as `dqn verify`, loses nothing by equal copies
            if is_locked(run.path) and not _is_locked_by(run, stale):
                return
        if not held.beat():
            return
        stack.enter_context(locked_anew(run.path))
        logs = [*(run.tables / f"{name}.csv" for name in TABLES), run.events, run.evaluation_progress]
        with writing(run.path):
            for path in filter(is_file, logs):
                _replace_by_copy(path, held)


def _is_locked_by(run: RunDirectory, stale: Lease) -> bool:
    """Return whether the owner of a stale lease, or its training, holds the lock of the run for writing.

    A process of an earlier version, which left no name, counts as one of them.
    """
    holder, owner = recorded_holder(run.path), stale.owner
    owners = [(owner.pid, owner.started), (stale.process, stale.process_started)]
    return holder is None or (holder.machine == owner.machine and (holder.pid, holder.started) in owners)


def _replace_by_copy(path: Path, held: HeldLease) -> None:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        shutil.copyfile(path, partial)
        fsync_file(partial)  # its checkpoints rely on its length
        if held.beat():  # a copy made before another process took the run over lacks that process's rows
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
