"""The lock of a sweep's record: exclusive for a command that changes it, shared for one that begins a run."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import exists
from atari_dqn.files.failures import writing
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member, read_record

_TRIES, _PAUSE_SECONDS = 500, 0.02


@contextmanager
def locked_to_change(folder: SweepFolder) -> Iterator[None]:
    """Lock the record, so that two commands do not replace it at the same time."""
    with _locked(folder, fcntl.LOCK_EX, tries=_TRIES):
        yield


def may_train(folder: SweepFolder, member: Member) -> bool:
    """Return whether the record of a sweep still has a member, with the same digest.

    False while another command is changing the record; True without a record, because the runs of a tune do
    not change. The caller holds the lease of the member. A command that changes the record reads the leases
    under the same lock: either it finds this lease and leaves the member, or this function finds the change.
    """
    if not exists(folder.record):
        return True
    try:
        with _locked(folder, fcntl.LOCK_SH, tries=1):
            record = read_record(folder.record)
    except RecordLockedError:
        return False
    return any(
        (each.name, each.digest) == (member.name, member.digest) for each in (*record.members, *record.former)
    )


class RecordLockedError(UserError):
    """Another command holds the lock of the record."""


@contextmanager
def _locked(folder: SweepFolder, kind: int, *, tries: int) -> Iterator[None]:
    path = folder.record_lock
    with writing(path):
        file = path.open("a+b")
    with file:
        for _ in range(tries):
            with writing(path), suppress(BlockingIOError):
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                break
            time.sleep(_PAUSE_SECONDS)
        else:
            raise RecordLockedError(f"{path}: another command is changing the sweep; try again")
        yield
