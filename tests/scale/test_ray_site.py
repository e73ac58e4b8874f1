"""What nodes of a cluster share, and when a member is taken from a node that gives no sign of life."""

import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from atari_dqn.cli.workers import ray_workers
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.leases.lease import HeldLease
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import OpenedSweep, open_sweep

pytest.importorskip("ray")

import ray

from atari_dqn.scale.on_ray import site as module
from atari_dqn.scale.on_ray.cluster import ClusterLostError, Node
from atari_dqn.scale.on_ray.command import command_leases
from atari_dqn.scale.on_ray.site import RaySite

HARDWARE = find_hardware(Path.cwd(), with_gpus=False)
DEAD = replace(Owner.current(), pid=2**22 + 1)
PERIOD_SECONDS = 5.0


@dataclass
class FakeRay:
    """Takes tasks and never says how they ended."""

    submitted: list[dict[str, Any]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    exceptions = ray.exceptions

    def wait(self, refs: list[int], **_: object) -> tuple[list[int], list[int]]:
        return [], refs

    def cancel(self, ref: int) -> None:
        self.cancelled.append(ref)

    def remote(self, _: object) -> "FakeRay":
        return self

    def options(self, **_: object) -> "FakeOptions":
        return FakeOptions(self)


@dataclass
class FakeOptions:
    ray: FakeRay

    def remote(self, task: dict[str, Any]) -> int:
        self.ray.submitted.append(task)
        return len(self.ray.submitted)


@dataclass
class FakeCluster:
    nodes: dict[str, Node]

    def alive(self) -> dict[str, Node]:
        return self.nodes


@dataclass
class Place:
    site: RaySite
    cluster: FakeCluster
    observer: LeaseObserver
    members: list[Member]
    opened: OpenedSweep
    clock: list[float]
    ray: FakeRay

    def wait(self, seconds: float) -> None:
        self.clock[0] += seconds
        self.observer.refresh()
        self.site.refresh(self.observer)

    def begin(self, number: int) -> bool:
        self.site.start(self.members[number], self.observer)
        return self.members[number].name in self.site.running

    def lease(self, number: int, owner: Owner) -> HeldLease:
        name = self.members[number].name
        held = self.opened.folder.leases.take(name, owner, period_seconds=PERIOD_SECONDS)
        assert held is not None
        return held


def node_id(number: int) -> str:
    return f"{number:056x}"


def node(number: int) -> Node:
    return Node(
        id=node_id(number),
        name=f"node{number}",
        machine=f"machine{number}",
        hardware=replace(HARDWARE, memory_available_bytes=2**40),
        usable=(0,),
        cores=1,
        ram=2**40,
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, fake, clock = tmp_path / "mine.toml", FakeRay(), [0.0]
    path.write_text('spec = "catch_smoke"\nseeds = 3\n')
    opened = open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=HARDWARE)
    monkeypatch.setattr(module, "ray", fake)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    with command_leases(opened.folder, PERIOD_SECONDS) as commands:
        cluster = FakeCluster({node_id(number): node(number) for number in (1, 2)})
        site = RaySite(
            cluster=cluster,  # type: ignore[arg-type]
            nodes=list(cluster.nodes.values()),
            folder=opened.folder,
            device="cpu",
            threads=1,
            commands=commands,
            report=lambda sentence: None,
        )
        observer = LeaseObserver(opened.folder.leases, now=lambda: clock[0])
        yield Place(site, cluster, observer, list(opened.record.members), opened, clock, fake)


@pytest.fixture
def set_disk(monkeypatch: pytest.MonkeyPatch, place: Place) -> Callable[[float], None]:
    """Sets the free space, as a number of runs that fit."""
    need = place.site._places[node_id(1)].needs_of(place.members[0])["cpu"].disk

    def set_it(runs: float) -> None:
        monkeypatch.setattr(module, "disk_free_bytes", lambda _: int(need * runs))
        place.wait(0.1)

    return set_it


def test_the_free_space_of_the_folder_is_promised_once_for_all_nodes(
    place: Place, set_disk: Callable[[float], None]
):
    set_disk(1.5)
    assert place.begin(0)
    assert not place.begin(1)
    place.wait(0.1)
    assert not place.begin(1)
    set_disk(2.5)
    assert place.begin(1)


def test_a_node_that_has_ended_keeps_no_promise(place: Place, set_disk: Callable[[float], None]):
    set_disk(1.5)
    assert place.begin(0)
    del place.cluster.nodes[node_id(1)]
    place.wait(0.1)
    assert place.begin(1)


def test_the_free_memory_of_a_node_is_what_ray_may_give_and_is_free() -> None:
    assert replace(node(1), ram=5).free_ram == 5
    assert replace(node(1), hardware=replace(HARDWARE, memory_available_bytes=7)).free_ram == 7


def test_the_end_of_the_last_node_names_the_command_that_continues(place: Place) -> None:
    nodes = list(place.cluster.nodes.values())
    place.cluster.nodes.clear()
    with (
        pytest.raises(ClusterLostError, match=r"last node .* has ended; `dqn sweep runs --on ray` continues"),
        ray_workers(
            place.opened.folder,
            place.cluster,  # type: ignore[arg-type]
            nodes,
            device="cpu",
            threads=1,
            jobs=None,
            continue_command="dqn sweep runs --on ray",
        ) as workers,
    ):
        workers(lambda sentence: None).start(place.members)


@pytest.mark.parametrize("owner", [DEAD, replace(DEAD, machine="another machine")])
def test_a_member_is_taken_from_a_node_after_three_heartbeats_before_ray_notices(place: Place, owner: Owner):
    place.begin(0)
    held = place.lease(0, owner)
    place.wait(0.0)
    place.wait(2.9 * PERIOD_SECONDS)
    assert place.members[0].name in place.site.running
    place.wait(0.2 * PERIOD_SECONDS)
    assert place.members[0].name not in place.site.running
    assert place.begin(0)
    assert place.ray.submitted[-1]["stale"] == [held.lease.token, held.lease.heartbeat]
    assert place.site._tasks[place.members[0].name].node == node_id(2)


def test_a_task_that_gives_a_sign_again_goes_on(place: Place):
    place.begin(0)
    held = place.lease(0, Owner.current())
    place.wait(0.0)
    place.wait(3.1 * PERIOD_SECONDS)
    assert place.members[0].name not in place.site.running
    held.beat()
    place.wait(1.0)
    assert place.members[0].name in place.site.running
    assert len(place.ray.submitted) == 1


def leases_of_the_command(place: Place) -> set[str]:
    return {*place.opened.folder.commands.current()}


def test_one_run_is_stopped_by_the_end_of_its_own_lease(place: Place):
    assert place.begin(0)
    assert place.begin(1)
    first, second = (order["command"] for order in place.ray.submitted)
    assert leases_of_the_command(place) == {first, second}
    place.lease(0, Owner.current())
    place.site.stop([place.members[0].name])
    assert leases_of_the_command(place) == {second}
    assert place.ray.cancelled == []
    assert {*place.site.running} == {place.members[0].name, place.members[1].name}


def test_a_task_that_waits_for_a_worker_of_ray_is_cancelled_when_it_is_stopped(place: Place):
    assert place.begin(0)
    place.site.stop([place.members[0].name])
    assert place.ray.cancelled == [1]
    assert {*place.site.running} == set()
    assert place.begin(0)


def test_a_task_that_has_not_taken_a_stale_lease_is_cancelled_when_it_is_stopped(place: Place):
    place.lease(0, DEAD)
    place.observer.refresh()
    assert place.begin(0)
    place.site.stop([place.members[0].name])
    assert place.ray.cancelled == [1]


def wait_for_a_heartbeat(folder: SweepFolder, name: str) -> None:
    until = time.monotonic() + 5
    while folder.commands.current()[name].heartbeat < 2:
        assert time.monotonic() < until, "nothing renews the lease"
        time.sleep(0.02)


def test_the_leases_of_a_command_are_renewed_and_go_with_it(tmp_path: Path):
    folder = SweepFolder(tmp_path)
    folder.create()
    with command_leases(folder, 0.02) as commands:
        wait_for_a_heartbeat(folder, commands.take())
    assert folder.commands.current() == {}


def test_the_leases_of_a_command_are_renewed_again_after_the_disk_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder, write, failed = SweepFolder(tmp_path), os.pwrite, Event()

    def write_after_a_failure(descriptor: int, data: bytes, offset: int) -> int:
        if failed.is_set():
            return write(descriptor, data, offset)
        failed.set()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    folder.create()
    monkeypatch.setattr(os, "pwrite", write_after_a_failure)
    with command_leases(folder, 0.02) as commands:
        name = commands.take()
        wait_for_a_heartbeat(folder, name)
        assert failed.is_set()
        assert folder.commands.current()[name].heartbeat >= 2
