"""What runs need of a machine, what the machine has, and which cores and device a run gets."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from atari_dqn.errors import UserError
from atari_dqn.machine.actors import cores_for_actors
from atari_dqn.machine.cgroup import ControlGroups
from atari_dqn.machine.devices import cuda_index
from atari_dqn.machine.hardware import Hardware, find_hardware, may_have_gpus, usable_cores
from atari_dqn.machine.plan import make_plan
from atari_dqn.machine.sizes import MOST_ACTIONS
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.sweep.record import Member
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.keys import Values, build


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a run takes of a machine."""

    cores: int
    ram: int
    vram: int
    disk: int
    """Bytes of memory and disk space, by the plan of the whole run."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The part of a machine that a run gets."""

    device: str
    """`cpu` or `cuda:N`."""
    cores: tuple[int, ...]
    """Cores that the run may use; empty on systems without affinity."""
    threads: int


class Needs:
    """Computes the needs of members; those of a label are the same."""

    def __init__(self, hardware: Hardware, threads: int) -> None:
        self._hardware, self.threads = hardware, threads
        self._known: dict[tuple[str, str], Need] = {}

    def of(self, member: Member, device: str) -> Need:
        """Return the need of a member on a device."""
        key = (member.label, device)
        if key not in self._known:
            self._known[key] = _need(member.values, device, self._hardware, self.threads)
        return self._known[key]

    def by_device(self, member: Member, devices: Iterable[str]) -> dict[str, Need]:
        """Return the need of a member on each of some devices."""
        return {device: self.of(member, device) for device in devices}


def _need(values: Values, device: str, hardware: Hardware, threads: int) -> Need:
    spec = build(values)
    plan = make_plan(spec, num_actions=MOST_ACTIONS, device=device, hardware=hardware)
    threads = max(threads, int(values.get("learner.threads", threads)))  # earlier sweeps may have more
    cores = max(threads + decided(spec.system.workers), cores_for_actors(spec))
    return Need(
        cores=max(threads, min(hardware.cores_usable, cores)),  # more threads than cores are refused
        ram=plan.bytes("ram"),
        vram=plan.bytes("vram"),
        disk=plan.bytes("disk"),
    )


class Disk:
    """The free space for the files of runs, promised to each run when it is placed.

    What a run has written already is part of its plan and no longer free, so it is not promised once more.
    Two machines may hold a promise to one run for a while, if it is taken from one that has become silent.
    """

    def __init__(self, free_bytes: int, written_bytes: Callable[[str], int] | None = None) -> None:
        """`written_bytes`: gives the space that the files of a run take now; None if none has begun."""
        self.free_bytes, self._written_bytes = free_bytes, written_bytes
        self._planned: dict[tuple[int, str], int] = {}

    def has_space(self, name: str, planned: int) -> bool:
        """Return whether a run with a plan of so many bytes can write the rest of them."""
        return self.left_to_write(name, planned) <= self.free_bytes

    def promise(self, room: Room, name: str, planned: int) -> None:
        """Promise to a run in a room the rest of the bytes of its plan."""
        self.free_bytes -= self.left_to_write(name, planned)
        self._planned[id(room), name] = planned

    def end_promise(self, room: Room, name: str) -> None:
        """End a promise. The space stays taken, by the files of the run, until it is measured again."""
        del self._planned[id(room), name]

    def set_measured(self, free_bytes: int) -> None:
        """Set the free space as measured, less what the present runs may still write."""
        left = (self.left_to_write(name, planned) for (_, name), planned in self._planned.items())
        self.free_bytes = free_bytes - sum(left)

    def left_to_write(self, name: str, planned: int) -> int:
        """Return how many of the planned bytes of a run its files do not take yet."""
        written = 0 if self._written_bytes is None else self._written_bytes(name)
        return max(0, planned - written)


class Room:
    """The free cores, memory and disk space of a machine, from which runs take their parts."""

    def __init__(
        self,
        hardware: Hardware,
        devices: Sequence[str],
        *,
        cores: Sequence[int] | None = None,
        disk: Disk | None = None,
    ) -> None:
        """`disk`: the one that several machines share; None for the machine's own."""
        self._cores = list(cores_of(hardware) if cores is None else cores)
        self._ram, self.disk = hardware.memory_available_bytes, disk or Disk(hardware.disk_free_bytes)
        self._vram = {device: _vram(hardware, device) for device in devices}
        self._taken: dict[str, tuple[Placement, Need]] = {}

    @property
    def free_cores(self) -> tuple[int, ...]:
        """The cores that no run here has."""
        return tuple(self._cores)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices for runs."""
        return tuple(self._vram)

    def place(
        self,
        name: str,
        needs: Mapping[str, Need],
        *,
        threads: int,
        avoid: Collection[int] = (),
        crowd: Mapping[int, int] = MappingProxyType({}),
    ) -> Placement | None:
        """Give a run its part, on the device with the most free memory; None if it does not fit now.

        `needs`: by device. `avoid`: cores that others use. `crowd`: processes that are bound to a core, for
        cores that have any; cores with the fewest are given first.
        """
        for device in sorted(self._vram, key=lambda device: -self._vram[device]):
            if not self._lacking(name, device, needs[device], avoid):
                return self._give(name, device, needs[device], threads, self._free_cores(avoid, crowd))
        return None

    def is_full(self, avoid: Collection[int] = ()) -> bool:
        """Return whether no core is free, apart from those that others use."""
        return all(core in avoid for core in self._cores)

    def lacking(self, name: str, needs: Mapping[str, Need]) -> list[str]:
        """Return the names of all that a run lacks now, on the device that lacks least."""
        return min((self._lacking(name, device, needs[device]) for device in self._vram), key=len)

    def give_back(self, name: str) -> None:
        """Take the part of a run back, apart from the disk space of its files, which remain."""
        placement, need = self._taken.pop(name)
        self.disk.end_promise(self, name)
        self._cores = sorted([*self._cores, *placement.cores])
        self._ram += need.ram
        self._vram[placement.device] += need.vram

    def give_all_back(self) -> None:
        """Take the parts of all runs back."""
        for name in list(self._taken):
            self.give_back(name)

    def __len__(self) -> int:
        return len(self._taken)

    def _free_cores(self, avoid: Collection[int], crowd: Mapping[int, int]) -> list[int]:
        free = (core for core in self._cores if core not in avoid)
        return sorted(free, key=lambda core: (crowd.get(core, 0), core))

    def _give(self, name: str, device: str, need: Need, threads: int, free: Sequence[int]) -> Placement:
        given = sorted(free[: need.cores])
        self._cores = [core for core in self._cores if core not in given]
        self._ram -= need.ram
        self.disk.promise(self, name, need.disk)
        self._vram[device] -= need.vram
        placement = Placement(device=device, cores=tuple(given), threads=threads)
        self._taken[name] = (placement, need)
        return placement

    def _lacking(self, name: str, device: str, need: Need, avoid: Collection[int] = ()) -> list[str]:
        wanted = {
            "cores": need.cores > sum(core not in avoid for core in self._cores),
            "RAM": need.ram > self._ram,
            "GPU memory": need.vram > self._vram[device],
            "disk": not self.disk.has_space(name, need.disk),
        }
        return [what for what, lacks in wanted.items() if lacks]


@cache
def _allowed_cores() -> tuple[int, ...]:
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    return tuple(sorted(affinity(0))) if affinity else tuple(range(usable_cores(ControlGroups())))


def cores_of(hardware: Hardware) -> tuple[int, ...]:
    """Return the cores that runs may use: a container may allow fewer at once than it has."""
    return _allowed_cores()[: hardware.cores_usable]


def _vram(hardware: Hardware, device: str) -> int:
    return 0 if device == "cpu" else hardware.gpus[cuda_index(device)].memory_free_bytes


def cores_of_others(observer: LeaseObserver, machine: str, ours: Collection[str]) -> set[int]:
    """Return the cores of a machine that runs use, apart from `ours`, by their leases."""
    return {
        core
        for lease in observer.leases.values()
        if lease.owner.machine == machine and lease.name not in ours and not observer.is_stale(lease.name)
        for core in lease.cores
    }


def find_sweep_hardware(path: Path) -> Hardware:
    """Detect the hardware; torch is not imported on a machine that cannot have a GPU."""
    return find_hardware(path, with_gpus=may_have_gpus())


def hardware_with_device(name: str, found: Sequence[Hardware]) -> Hardware:
    """Return the hardware by which a sweep is planned: the first that has a device, with GPUs if any has."""
    for hardware in sorted(found, key=lambda each: -len(each.gpus)):
        with suppress(UserError):
            devices_of(name, hardware)
            return hardware
    raise UserError(f"device {name!r} is not available on any of {len(found)} nodes; use --device cpu")


def devices_of(name: str, hardware: Hardware) -> tuple[str, ...]:
    """Return the devices that `--device` names: every GPU for `cuda`, and for `auto` if there are any."""
    gpus = tuple(f"cuda:{index}" for index in range(len(hardware.gpus)))
    if name == "cpu" or (name == "auto" and not gpus):
        return ("cpu",)
    chosen = gpus if name in ("auto", "cuda") else tuple(gpu for gpu in gpus if gpu == name)
    if not chosen:
        found = f"found {len(gpus)} CUDA devices"
        raise UserError(f"device {name!r} is not available: {found}; use --device cpu")
    return chosen
