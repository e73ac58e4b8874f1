"""The nodes of a Ray cluster as a place where members of a sweep are trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import ray

from atari_dqn.errors import UserError
from atari_dqn.machine.hardware import disk_free_bytes
from atari_dqn.run.leases.lease import Lease
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.sweep.failures import CrashCount, Failure, write_failure_record
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.on_ray.cluster import Cluster, ClusterLostError, Node, on
from atari_dqn.scale.on_ray.command import CommandLeases
from atari_dqn.scale.on_ray.node import train_member, wait_for_leases
from atari_dqn.scale.on_ray.node_room import NodeRoom
from atari_dqn.scale.room import Disk, Need, Placement, cores_of_others, devices_of
from atari_dqn.scale.runner import MOST_CRASHES, Outcome

_WAKE_SECONDS = 1.0
_LOOK_SECONDS = 2.0
"""Time between two looks at the nodes of the cluster."""
_SAVING_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """A member that is trained on a node."""

    name: str
    node: str
    ref: ray.ObjectRef[Any]
    over: list[Any] | None
    """Token and heartbeat of the stale lease over which the task takes the member."""
    command: str
    """The lease of the command without which the run stops."""


class RaySite:
    """Implements `Site` for a cluster: a task of Ray trains a member on the node that has room for it."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        nodes: Sequence[Node],
        folder: SweepFolder,
        device: str,
        threads: int,
        commands: CommandLeases,
        report: Callable[[str], None],
    ) -> None:
        self._cluster, self._folder, self._device, self._threads = cluster, folder, device, threads
        self._commands, self._report = commands, report
        self._train = ray.remote(train_member)
        self._disk = Disk(disk_free_bytes(folder.path), folder.written_bytes)
        self._places: dict[str, NodeRoom] = {}
        self._refused: set[str] = set()
        self._tasks: dict[str, Task] = {}
        self._silent: list[Task] = []
        """Tasks whose leases became stale, until Ray says how they ended."""
        self._deaths: dict[str, CrashCount] = {}
        """How often the workers of a member have died since its newest checkpoint."""
        self._looked_at = time.monotonic()
        for node in nodes:
            self._admit(node)
        if not self._places:
            raise UserError(f"--device: no node of the cluster has the device {device!r}")

    @property
    def running(self) -> Collection[str]:
        """The names of the members that are trained now."""
        return self._tasks.keys()

    def refresh(self, observer: LeaseObserver) -> None:
        """Update the nodes and what others use of them; write off tasks whose leases have become silent."""
        if time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._look()
        self._write_off(observer)
        self._disk.set_measured(disk_free_bytes(self._folder.path))
        for place in self._places.values():
            ours = {task.name for task in self._tasks.values() if task.node == place.node.id}
            place.used_by_others = cores_of_others(observer, place.node.machine, ours)

    def _write_off(self, observer: LeaseObserver) -> None:
        """Write off tasks whose heartbeat has stopped; take those back whose heartbeat goes on."""
        for name, lease in observer.leases.items():
            task = self._tasks.get(name)
            if task and [lease.token, lease.heartbeat] != task.over and observer.is_silent(name):
                self._report(f"{name}: three heartbeats from {lease.owner.host} are missing")
                self._silent.append(self._tasks.pop(name))
        for task in reversed(self._silent):
            lives = task.name in observer.leases and not observer.is_stale(task.name)
            if lives and task.name not in self._tasks:  # such as one that Ray runs again
                self._tasks[task.name] = task
        self._silent = [each for each in self._silent if each not in self._tasks.values()]

    def has_room(self) -> bool:
        """Return whether a core of a node is free."""
        return any(not place.room.is_full(place.used_by_others) for place in self._usable())

    def start(self, member: Member, observer: LeaseObserver) -> None:
        """Start a member whose lease is free or stale, if it fits on a node now."""
        lease = observer.leases.get(member.name)
        silent = {task.node for task in self._silent if task.name == member.name}
        for place in self._usable():
            if place.node.id in silent:
                continue
            needs = place.needs_of(member)
            found = place.room.place(member.name, needs, threads=self._threads, avoid=place.used_by_others)
            if found is not None:
                self._tasks[member.name] = self._submit(member, place, found, needs[found.device], lease)
                if lease is not None:
                    self._report(f"{member.name}: taken over from {lease.owner.host} by {place.node.name}")
                return

    def ended(self) -> Sequence[tuple[str, Outcome | BaseException]]:
        """Wait a moment for members that end; return them with their outcomes."""
        tasks = [*self._tasks.values(), *self._silent]
        if not tasks:
            time.sleep(_WAKE_SECONDS)
            return []
        done, _ = ray.wait([task.ref for task in tasks], timeout=_WAKE_SECONDS, fetch_local=False)
        found: list[tuple[str, Outcome | BaseException]] = []
        for task in tasks:
            if task.ref in done:
                self._give_back(task)
                outcome = self._outcome(task)
                if task in self._silent:
                    self._silent.remove(task)
                else:
                    del self._tasks[task.name]
                    found.append((task.name, outcome))
        return found

    def lacking(self, member: Member) -> str:
        """Describe what the nodes have too little of."""
        found = [place.room.lacking(member.name, place.needs_of(member)) for place in self._places.values()]
        fewest = min(found, key=len)
        return f"every node of the cluster has too little {' and '.join(fewest)}"

    def stop(self, names: Collection[str]) -> None:
        """Let runs save a checkpoint and stop; forget those that wait for a worker of Ray."""
        tasks = [self._tasks[name] for name in names]
        self._commands.release([task.command for task in tasks])
        held = self._folder.leases.current() if tasks else {}
        for task in tasks:
            has_ended, _ = ray.wait([task.ref], timeout=0, fetch_local=False)
            if not has_ended and self._has_not_begun(task, held.get(task.name)):
                with suppress(ray.exceptions.RayError):
                    ray.cancel(task.ref)
                self._give_back(self._tasks.pop(task.name))

    @staticmethod
    def _has_not_begun(task: Task, held: Lease | None) -> bool:
        """Return whether a task has not taken the lease of its member, which may be stale."""
        return held is None or [held.token, held.heartbeat] == task.over

    def close(self) -> None:
        """Stop whatever still runs, and wait until it has been saved, unless that was interrupted."""
        names = {task.name for task in self._tasks.values() if self._commands.is_held(task.command)}
        self._commands.release([task.command for task in [*self._tasks.values(), *self._silent]])
        wait_for_leases(self._folder.leases, names, _SAVING_SECONDS)

    def _usable(self) -> list[NodeRoom]:
        """Return the nodes with most free cores first, without those whose heartbeat has stopped."""
        silent = {task.node for task in self._silent}
        known = [each for key, each in self._places.items() if key not in silent] or [*self._places.values()]
        return sorted(known, key=lambda place: len(place.room) - len(place.cores))

    def _submit(
        self, member: Member, place: NodeRoom, placement: Placement, need: Need, lease: Lease | None
    ) -> Task:
        """Hand a member to Ray, over a stale lease if it has one."""
        stale = None if lease is None else [lease.token, lease.heartbeat]
        command = self._commands.take()
        order = {
            "folder": str(self._folder.path.absolute()),
            "member": asdict(member),
            "placement": asdict(placement),
            "period_seconds": self._commands.period_seconds,
            "command": command,
            "stale": stale,
        }
        options = self._train.options(**ray_options(need), scheduling_strategy=on(place.node.id))
        ref = options.remote(order)
        return Task(name=member.name, node=place.node.id, ref=ref, over=stale, command=command)

    def _outcome(self, task: Task) -> Outcome | BaseException:
        try:
            found: Mapping[str, Any] = ray.get(task.ref)
        except ray.exceptions.RayTaskError as error:  # a fault of ours
            return error
        except ray.exceptions.TaskUnschedulableError:  # its node ended before it began
            return Outcome(kind="lost")
        except ray.exceptions.RayError as error:
            return self._died(task.name, type(error).__name__)
        for sentence in found["reports"]:
            self._report(sentence)
        if found["kind"] == "error":
            return UserError(found["failure"])
        failure = found["failure"] and msgspec.convert(found["failure"], Failure)
        return Outcome(kind=found["kind"], failure=failure)

    def _died(self, name: str, reason: str) -> Outcome:
        """Return the outcome of a member whose worker or node has died: it goes on, unless it never does."""
        progress = self._folder.progress(name)
        if self._deaths.setdefault(name, CrashCount(progress)).add(progress) < MOST_CRASHES:
            self._report(f"{name}: its Ray worker or node has ended ({reason}); it goes on")
            return Outcome(kind="lost")
        failure = Failure(
            kind="crashed", reason=f"its Ray workers ended over and over: {reason}", exit_code=1
        )
        write_failure_record(self._folder.failure(name), failure)
        return Outcome(kind="failed", failure=failure)

    def _give_back(self, task: Task) -> None:
        self._commands.release([task.command])
        if task.node in self._places:
            self._places[task.node].room.give_back(task.name)

    def _look(self) -> None:
        """Drop nodes that have ended, and admit new ones; a node that may not be used is reported once.

        Raise `ClusterLostError` if no node is left on which runs may be trained.
        """
        alive = self._cluster.alive()
        for key in self._places.keys() - alive.keys():
            place = self._places.pop(key)
            place.room.give_all_back()
            self._report(f"{place.node.name}: this node has ended")
        for key in alive.keys() - self._places.keys() - self._refused:
            try:
                nodes = self._cluster.describe([key], self._folder.path)
                self._cluster.check_folder(self._folder, nodes)
                for node in nodes:
                    self._admit(node)
            except UserError as error:
                self._refused.add(key)
                self._report(f"{error}; nothing is trained there")
        if not self._places:
            raise ClusterLostError("the last node of the cluster on which runs could be trained has ended")

    def _admit(self, node: Node) -> None:
        """Add a node; nodes of one machine get different cores, and one without the device gets no runs."""
        dealt = {
            core
            for place in self._places.values()
            if place.node.machine == node.machine
            for core in place.cores
        }
        cores = [core for core in node.usable if core not in dealt][: node.cores]
        try:
            devices = devices_of(self._device, node.hardware)
            if not cores:
                raise UserError("it has no core for runs")
        except UserError as error:
            self._refused.add(node.id)
            self._report(f"{node.name}: {error}; nothing is trained there")
            return
        self._places[node.id] = NodeRoom(node, cores, devices, self._threads, self._disk)


def ray_options(need: Need) -> dict[str, Any]:
    """Return the options with which Ray reserves cores and memory for a run, against others on the cluster.

    Ray reserves no GPU: it counts fractions of one, while runs share it by measured memory.
    """
    return {"num_cpus": need.cores, "memory": need.ram, "max_retries": 1}
