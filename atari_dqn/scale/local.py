"""Run members on this machine, as many at once as its cores, memory and disk allow."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from threading import Event, Thread

from atari_dqn.errors import UserError
from atari_dqn.machine.affinity import bound_processes
from atari_dqn.machine.hardware import disk_free_bytes
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.room import Need, Needs, Placement, Room
from atari_dqn.scale.runner import Outcome, Runner

_WAKE_SECONDS = 1.0


@dataclass(kw_only=True)
class LocalWorkers:
    """Runs members in threads of this process, each in its own part of the machine.

    A member whose lease another process holds is left to it, and taken over once its lease is stale.
    """

    runner: Runner
    room: Room
    needs: Needs
    threads: int
    """Threads of torch in each run."""
    jobs: int | None = None
    """The largest number of runs at once; None for as many as fit."""
    _ended: SimpleQueue[tuple[str, Outcome | BaseException]] = field(default_factory=SimpleQueue)
    _stops: dict[str, Event] = field(default_factory=dict)
    """The event that stops each running member."""
    _not_before: dict[str, float] = field(default_factory=dict)
    _error: BaseException | None = None

    def __post_init__(self) -> None:
        self._cores = self.room.free_cores
        self._observer = LeaseObserver(self.runner.folder.leases)

    @property
    def running(self) -> Collection[str]:
        """The names of the members that run here."""
        return self._stops.keys()

    def start(self, members: Sequence[Member]) -> None:
        """Start, in order, every member that fits and does not run anywhere.

        `UserError` if nothing runs and nothing ever will. After an error of a member nothing is started: the
        error is raised once all others have stopped.
        """
        if self._error is not None:
            if not self._stops:
                raise self._error
            return
        self._observer.refresh()
        self.room.disk.set_measured(disk_free_bytes(self.runner.folder.path))
        free = [member for member in members if self._is_free(member.name)]
        others = self._cores_of_others()
        crowd: Mapping[int, int] | None = None
        for member in free:
            if self.room.is_full(others) or len(self._stops) == self.jobs:
                break
            crowd = bound_processes(self._cores) if crowd is None else crowd
            placement = self.room.place(
                member.name, self._needs_of(member), threads=self.threads, avoid=others, crowd=crowd
            )
            if placement is not None:
                self._begin(member, placement)
        if free and not self._stops and not self._observer.leases:
            lacking = " and ".join(self.room.lacking(free[0].name, self._needs_of(free[0])))
            raise UserError(f"{free[0].name} does not fit: this machine has too little {lacking}; see --plan")

    def stop(self, names: Collection[str]) -> None:
        """Let running members save a checkpoint and stop."""
        for name in names:
            self._stops[name].set()

    def ended(self) -> list[tuple[str, Outcome]]:
        """Wait a moment for members that end; return them with their outcomes."""
        found = []
        items = []
        with suppress(Empty):
            items.append(self._ended.get(timeout=_WAKE_SECONDS))
            while True:
                items.append(self._ended.get_nowait())
        for name, outcome in items:
            del self._stops[name]
            self.room.give_back(name)
            if isinstance(outcome, BaseException):
                self._error = self._error or outcome
                continue
            if outcome.kind in ("held", "lost"):
                self._not_before[name] = time.monotonic() + self.runner.period_seconds
            found.append((name, outcome))
        if self._error is not None:
            self.stop(self.running)
        return found

    def _is_free(self, name: str) -> bool:
        if name in self._stops or self._not_before.get(name, 0.0) > time.monotonic():
            return False
        return name not in self._observer.leases or self._observer.is_stale(name)

    def _needs_of(self, member: Member) -> dict[str, Need]:
        return {device: self.needs.of(member, device) for device in self.room.devices}

    def _cores_of_others(self) -> set[int]:
        """Return the cores that runs of other processes on this machine use."""
        leases = self._observer.leases.values()
        others = [
            each
            for each in leases
            if each.owner.is_here
            and each.owner != self.runner.owner
            and not self._observer.is_stale(each.name)
        ]
        return {core for each in others for core in each.cores}

    def _begin(self, member: Member, placement: Placement) -> None:
        stale = self._observer.leases.get(member.name)
        stop = self._stops[member.name] = Event()
        runner = replace(self.runner, stop=stop)

        def work() -> None:
            try:
                self._ended.put((member.name, runner.run(member, placement, stale)))
            except BaseException as error:  # raised by the thread that starts members
                self._ended.put((member.name, error))

        # A daemon, so that a second signal ends the process at once; the kernel then kills the trainings.
        Thread(target=work, name=member.name, daemon=True).start()
