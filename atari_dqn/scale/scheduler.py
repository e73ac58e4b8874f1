"""Run the members of a sweep in order, on this machine or a cluster, until each has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from atari_dqn.files.atomic import reading
from atari_dqn.run.sweep.failures import Failure, read_failures
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member, read_record
from atari_dqn.scale.runner import Outcome
from atari_dqn.scale.takeover import release_ended


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """How the runs of a sweep ended."""

    finished: tuple[str, ...]
    failed: dict[str, Failure]
    unfinished: tuple[str, ...]
    """Runs that were stopped, or never begun, because of a signal."""


class Workers(Protocol):
    """Runs members, each in its own part of a machine or a cluster."""

    @property
    def running(self) -> Collection[str]:
        """The names of the members that run here."""
        ...

    def start(self, members: Sequence[Member]) -> None:
        """Start, in order, every member that fits and does not run anywhere."""
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

    A member that does not run and that the record has lost meanwhile is left out.
    `show`: called about each second with the names of the runs that run here or ended since the last call.
    """
    failed = _failures(folder)
    finished = [member.name for member in members if folder.has_finished(member.name)]
    left = [each for each in members if each.name not in {*finished, *failed}]
    pending = {each.name: each for each in sorted(left, key=lambda each: not folder.has_begun(each.name))}
    watch = RecordWatch(folder, report)
    with saved_on_error(workers):
        while pending:
            if is_interrupted():
                if not workers.running:
                    break
                workers.stop(workers.running)
            else:
                watch.drop_lost(pending, workers.running)
                workers.start(list(pending.values()))
            changed = {*workers.running}
            for name, outcome in workers.ended():
                if outcome.kind == "finished":
                    finished.append(name)
                elif outcome.failure is not None:
                    failed[name] = outcome.failure
                if outcome.kind in ("finished", "failed"):
                    del pending[name]
            show(changed)
    release_ended(folder, {*finished, *failed})
    names = {member.name for member in members}
    return SweepResult(
        finished=tuple(finished),
        failed={name: failure for name, failure in failed.items() if name in names},
        unfinished=tuple(pending),
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


def _failures(folder: SweepFolder) -> dict[str, Failure]:
    """Return the recorded failures, without those of runs that a user has finished by hand since."""
    recorded = read_failures(folder.failures)
    return {name: failure for name, failure in recorded.items() if not folder.has_finished(name)}
