"""Run the members of a sweep in order, on this machine or a cluster, until each has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import reading
from atari_dqn.run.sweep.failures import Failure, read_failures
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member, read_record
from atari_dqn.scale.runner import Outcome
from atari_dqn.scale.takeover import release_ended


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """How the runs of a sweep ended, each kind in the order of the sweep."""

    finished: tuple[str, ...]
    failed: dict[str, Failure]
    unfinished: tuple[str, ...]
    """Runs that were stopped, or never begun, because of a signal or of `error`."""
    error: UserError | None = None
    """Why they could not be trained, such as for one that does not fit."""


class Workers(Protocol):
    """Runs members, each in its own part of a machine or a cluster."""

    @property
    def running(self) -> Collection[str]:
        """The names of the members that run here."""
        ...

    def start(self, members: Sequence[Member]) -> None:
        """Start, in order, every member that fits and does not run anywhere.

        `UserError` if nothing runs here and nothing ever will.
        """
        ...

    def stop(self, names: Collection[str]) -> None:
        """Let running members save a checkpoint and stop."""
        ...

    def ended(self) -> Sequence[tuple[str, Outcome]]:
        """Wait a moment for members that end; return them with their outcomes."""
        ...


class RecordWatch:
    """Finds members that the record has lost since another command opened the sweep with a changed file."""

    def __init__(self, folder: SweepFolder, report: Callable[[str], None]) -> None:
        self._path, self._report = folder.record, report
        self._stamp = (0, 0)
        self._recorded: set[tuple[str, str]] = set()

    def drop_lost(self, pending: dict[str, Member], running: Collection[str]) -> None:
        """Remove members that do not run, and whose name is recorded for no run or for another spec."""
        self._refresh()
        for member in [each for each in pending.values() if each.name not in running]:
            if (member.name, member.digest) not in self._recorded:
                del pending[member.name]
                self._report(f"{member.name}: left out, because another command has changed the sweep")

    def _refresh(self) -> None:
        with reading(self._path):
            found = self._path.stat()
        stamp = (found.st_ino, found.st_mtime_ns)
        if stamp != self._stamp:
            record, self._stamp = read_record(self._path), stamp
            self._recorded = {(each.name, each.digest) for each in (*record.members, *record.former)}


def run_members(
    members: Sequence[Member],
    folder: SweepFolder,
    workers: Workers,
    *,
    is_interrupted: Callable[[], bool],
    show: Callable[[Collection[str]], None],
    report: Callable[[str], None],
) -> SweepResult:
    """Run members, those that have begun first, until each has ended or, after an interrupt, been stopped.

    A member that does not run and that the record has lost meanwhile is left out. After a `UserError`, such
    as that of a member that does not fit, what runs is saved, and the result has the error.
    `show`: called about each second with the names of the runs that run here or ended since the last call.
    """
    ended = _ended(folder, members)
    left = [each for each in members if each.name not in ended]
    pending = {each.name: each for each in sorted(left, key=lambda each: not folder.has_begun(each.name))}
    release_ended(folder, folder.leases.current().keys() - pending.keys())
    watch, error = RecordWatch(folder, report), None
    try:
        with saved_on_error(workers):
            while pending:
                if not is_interrupted():
                    watch.drop_lost(pending, workers.running)
                    workers.start(list(pending.values()))
                elif workers.running:
                    workers.stop(workers.running)
                else:
                    break
                changed = {*workers.running}
                for name, outcome in workers.ended():
                    if outcome.kind in ("finished", "failed"):
                        ended[name] = outcome.failure
                        del pending[name]
                show(changed)
    except UserError as found:
        error = found
    return _result(members, ended, pending, error)


def _ended(folder: SweepFolder, members: Sequence[Member]) -> dict[str, Failure | None]:
    """Return the failure of each member that needs no more training, None for one that has finished."""
    failures: Mapping[str, Failure | None] = read_failures(folder.failures)
    finished = {member.name: None for member in members if folder.has_finished(member.name)}
    names = {member.name for member in members}
    return {**{name: failure for name, failure in failures.items() if name in names}, **finished}


def _result(
    members: Sequence[Member],
    ended: Mapping[str, Failure | None],
    pending: Collection[str],
    error: UserError | None,
) -> SweepResult:
    names = [member.name for member in members]
    failures = {name: ended[name] for name in names if name in ended}
    return SweepResult(
        finished=tuple(name for name, failure in failures.items() if failure is None),
        failed={name: failure for name, failure in failures.items() if failure is not None},
        unfinished=tuple(name for name in names if name in pending),
        error=error,
    )


@contextmanager
def saved_on_error(workers: Workers) -> Iterator[None]:
    """Let all running members save a checkpoint and stop before an exception of the block goes on."""
    try:
        yield
    except BaseException:
        while workers.running:
            workers.stop(workers.running)
            workers.ended()
        raise
