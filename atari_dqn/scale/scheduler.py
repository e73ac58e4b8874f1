"""Run the members of a sweep in order, on this machine or a cluster, until each has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from atari_dqn.errors import UserError
from atari_dqn.files.failures import reading
from atari_dqn.run.sweep.failures import Failure, read_failures
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.mismatch import mismatch
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

    def raise_error(self) -> None:
        """Raise an error of a member, such as that of a full disk, once all others have stopped.

        After such an error nothing is started.
        """
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
    progress, watch, error = _Progress(members, folder), RecordWatch(folder, report), None
    release_ended(folder, folder.leases.current().keys() - progress.pending.keys())
    try:
        with saved_on_error(workers, progress.note):
            while progress.pending:
                workers.raise_error()
                if not is_interrupted():
                    watch.drop_lost(progress.pending, workers.running)
                    workers.start(list(progress.pending.values()))
                elif workers.running:
                    workers.stop(workers.running)
                else:
                    break
                changed = {*workers.running}
                progress.note(workers.ended())
                show(changed)
    except UserError as found:
        error = found
    return progress.result(error)


class _Progress:
    """Members that are still to be trained, and how the others have ended."""

    def __init__(self, members: Sequence[Member], folder: SweepFolder) -> None:
        self._names = [member.name for member in members]
        self._ended: dict[str, Failure | None] = dict(read_failures(folder.failures))
        finished = [each for each in members if folder.has_finished(each.name)]
        self._ended |= dict.fromkeys(
            each.name for each in finished if mismatch(folder.run(each.name), each) is None
        )
        left = [member for member in members if member.name not in self._ended]
        left.sort(key=lambda member: not folder.has_begun(member.name))
        self.pending = {member.name: member for member in left}
        """By name, those that have begun first."""

    def note(self, outcomes: Iterable[tuple[str, Outcome]]) -> None:
        """Note how members have ended; those that were stopped, or that others have, are still pending."""
        for name, outcome in outcomes:
            if outcome.kind in ("finished", "failed"):
                self._ended[name] = outcome.failure
                del self.pending[name]

    def result(self, error: UserError | None) -> SweepResult:
        """Return how the members have ended, in their order."""
        ends = {name: self._ended[name] for name in self._names if name in self._ended}
        return SweepResult(
            finished=tuple(name for name, failure in ends.items() if failure is None),
            failed={name: failure for name, failure in ends.items() if failure is not None},
            unfinished=tuple(name for name in self._names if name in self.pending),
            error=error,
        )


@contextmanager
def saved_on_error(workers: Workers, note: Callable[[Sequence[tuple[str, Outcome]]], None]) -> Iterator[None]:
    """Let all running members save a checkpoint and stop before an error of the block goes on.

    A `KeyboardInterrupt`, which is the second signal, goes on at once.
    `note`: called with the outcomes of those that end meanwhile.
    """
    try:
        yield
    except Exception:
        while workers.running:
            workers.stop(workers.running)
            note(workers.ended())
        raise
