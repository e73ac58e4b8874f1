"""Run the members of a sweep in order, on this machine or a cluster, until each has ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from atari_dqn.run.sweep.failures import Failure, read_failures
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
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


def run_members(
    members: Sequence[Member],
    folder: SweepFolder,
    workers: Workers,
    *,
    is_interrupted: Callable[[], bool],
    show: Callable[[Collection[str]], None],
) -> SweepResult:
    """Run members, those that have begun first, until each has ended or, after an interrupt, been stopped.

    `show`: called about each second with the names of the runs that run here or ended since the last call.
    """
    failed = {
        name: failure
        for name, failure in read_failures(folder.failures).items()
        if not folder.has_finished(name)
    }
    finished = [member.name for member in members if folder.has_finished(member.name)]
    left = [each for each in members if each.name not in {*finished, *failed}]
    pending = {each.name: each for each in sorted(left, key=lambda each: not folder.has_begun(each.name))}
    while pending:
        if is_interrupted():
            if not workers.running:
                break
            workers.stop(workers.running)
        else:
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
