"""Train members on this machine, as many at once as its cores, memory and disk allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event, Thread

from atari_dqn.errors import InfrastructureError
from atari_dqn.machine.affinity import bound_processes
from atari_dqn.machine.hardware import disk_free_bytes
from atari_dqn.run.leases.lease import Lease
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.leases.owner import this_machine
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.room import Needs, Placement, Room, cores_of_others
from atari_dqn.scale.runner import Outcome, Runner

_WAKE_SECONDS = 1.0


class LocalSite:
    """Implements `Site` for this machine: each member is run by a thread, in its part of the machine."""

    def __init__(self, runner: Runner, room: Room, needs: Needs) -> None:
        self._runner, self._room, self._needs = runner, room, needs
        self._cores = room.free_cores
        self._used_by_others: set[int] = set()
        self._bound: Mapping[int, int] | None = None
        """Processes bound to each core; None until they are counted, which takes a look at every process."""
        self._ended: SimpleQueue[tuple[str, Outcome | BaseException]] = SimpleQueue()
        self._stops: dict[str, Event] = {}
        """The event that stops each running member."""

    @property
    def running(self) -> Collection[str]:
        """The names of the members that run here."""
        return self._stops.keys()

    def refresh(self, observer: LeaseObserver) -> None:
        """Update the free space, and the cores that runs of other processes use."""
        self._room.disk.set_measured(disk_free_bytes(self._runner.folder.path))
        self._used_by_others = cores_of_others(observer, this_machine(), self.running)
        self._bound = None

    def has_room(self) -> bool:
        """Return whether a core is free."""
        return not self._room.is_full(self._used_by_others)

    def start(self, member: Member, observer: LeaseObserver) -> None:
        """Start a member whose lease is free or stale, if it fits now."""
        if self._bound is None:
            self._bound = bound_processes(self._cores)
        placement = self._room.place(
            member.name,
            self._needs.by_device(member, self._room.devices),
            threads=self._needs.threads,
            avoid=self._used_by_others,
            crowd=self._bound,
        )
        if placement is not None:
            self._begin(member, placement, observer.leases.get(member.name))

    def lacking(self, member: Member) -> str:
        """Describe what this machine has too little of."""
        found = self._room.lacking(member.name, self._needs.by_device(member, self._room.devices))
        return f"this machine has too little {' and '.join(found)}"

    def stop(self, names: Collection[str]) -> None:
        """Let running members save a checkpoint and stop."""
        for name in names:
            self._stops[name].set()

    def ended(self) -> list[tuple[str, Outcome | BaseException]]:
        """Wait a moment for members that end; return them with their outcomes."""
        found = []
        with suppress(Empty):
            found.append(self._ended.get(timeout=_WAKE_SECONDS))
            while True:
                found.append(self._ended.get_nowait())
        for name, _ in found:
            del self._stops[name]
            self._room.give_back(name)
        return found

    def _begin(self, member: Member, placement: Placement, stale: Lease | None) -> None:
        stop = self._stops[member.name] = Event()
        runner = replace(self._runner, stop=stop)

        def work() -> None:
            try:
                self._ended.put((member.name, runner.run(member, placement, stale)))
            except BaseException as error:  # raised by the thread that starts members
                self._ended.put((member.name, error))

        # A daemon, so that a second signal ends the process at once; the kernel then kills the trainings.
        thread = Thread(target=work, name=member.name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            del self._stops[member.name]
            self._room.give_back(member.name)
            raise InfrastructureError(
                f"no thread could be started for {member.name} ({error}); the limit on the processes of a "
                "user may be reached (`ulimit -u`)"
            ) from error
