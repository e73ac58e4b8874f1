"""Runs share cores, memory and disk by their plans."""

from dataclasses import replace
from pathlib import Path

import pytest
from tiny import tiny_spec

from atari_dqn.errors import UserError
from atari_dqn.machine.hardware import Gpu, Hardware, find_hardware, may_have_gpus
from atari_dqn.run.leases.lease import LeaseFolder
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.room import (
    Disk,
    Need,
    Needs,
    Placement,
    Room,
    cores_of_others,
    devices_of,
    hardware_with_device,
)
from atari_dqn.spec.keys import flatten

GB = 10**9
GPU = Gpu(name="g", memory_bytes=16 * GB, memory_free_bytes=16 * GB, capability=(9, 0))
HARDWARE = replace(
    find_hardware(Path.cwd(), with_gpus=False),
    memory_available_bytes=10 * GB,
    disk_free_bytes=100 * GB,
    gpus=(GPU, replace(GPU, memory_free_bytes=20 * GB)),
)
SMALL = Need(cores=1, ram=GB, vram=0, disk=GB)


def room(*, cores: int = 4) -> Room:
    return Room(HARDWARE, ["cpu"], cores=range(cores))


def test_each_run_gets_cores_of_its_own():
    shared = room()
    first = shared.place("a", {"cpu": replace(SMALL, cores=2)}, threads=2)
    second = shared.place("b", {"cpu": SMALL}, threads=1)
    assert first == Placement(device="cpu", cores=(0, 1), threads=2)
    assert second == Placement(device="cpu", cores=(2,), threads=1)


@pytest.mark.parametrize(("per_core", "cores"), [(1, 3), (2, 2), (3, 1)])
def test_a_run_with_actors_needs_cores_for_all_of_them(per_core: int, cores: int):
    actors = ("actors.mode=free_running", "actors.processes=3", "actors.fragment_steps=5")
    more = ("env.num_envs=6", "actors.error_buffer_steps=40", f"system.actors_per_core={per_core}")
    values = flatten(tiny_spec(*actors, *more))
    member = Member(name="a", label="a", game="catch", seed=1, digest="", values=values)
    needs = Needs(replace(HARDWARE, cores_usable=8), threads=1)
    assert needs.of(member, "cpu").cores == cores


@pytest.mark.parametrize(("threads", "cores"), [(1, 3), (2, 3), (64, 64)])
def test_a_run_needs_a_core_for_each_thread_and_for_workers_as_far_as_there_are(threads: int, cores: int):
    values = {**flatten(tiny_spec("system.workers=4")), "learner.threads": min(threads, 2)}
    member = Member(name="a", label="a", game="catch", seed=1, digest="", values=values)
    needs = Needs(replace(HARDWARE, cores_usable=3), threads=threads)
    assert needs.of(member, "cpu").cores == cores


def test_a_run_with_more_threads_than_its_sweep_needs_a_core_for_each():
    values = {**flatten(tiny_spec()), "learner.threads": 2}
    member = Member(name="a", label="a", game="catch", seed=1, digest="", values=values)
    assert Needs(replace(HARDWARE, cores_usable=4), threads=1).of(member, "cpu").cores == 2


def test_cores_that_others_use_are_left_to_them():
    given = room().place("a", {"cpu": SMALL}, threads=1, avoid={0, 2})
    assert given is not None
    assert given.cores == (1,)
    assert room().is_full(avoid={0, 1, 2, 3})


def test_cores_of_others_are_those_of_live_runs_on_this_machine_that_are_not_ours(tmp_path: Path):
    here, leases = Owner.current(), LeaseFolder(tmp_path)
    dead, elsewhere = replace(here, pid=2**22 + 1), replace(here, machine="another machine")
    owners = {"ours": here, "theirs": here, "ended": dead, "elsewhere": elsewhere}
    for core, (name, owner) in enumerate(owners.items()):
        assert leases.take(name, owner, cores=[core]) is not None
    observer = LeaseObserver(leases)
    observer.refresh()
    assert cores_of_others(observer, here.machine, ours={"ours"}) == {1}


def test_cores_to_which_fewest_processes_are_bound_are_given_first():
    given = room().place("a", {"cpu": replace(SMALL, cores=2)}, threads=1, crowd={0: 1, 2: 2})
    assert given is not None
    assert given.cores == (1, 3)


@pytest.mark.parametrize(
    ("need", "lacking"),
    [
        (replace(SMALL, cores=5), "cores"),
        (replace(SMALL, ram=11 * GB), "RAM"),
        (replace(SMALL, disk=101 * GB), "disk"),
    ],
)
def test_a_run_that_does_not_fit_is_not_placed(need: Need, lacking: str):
    shared = room()
    assert shared.place("a", {"cpu": need}, threads=1) is None
    assert shared.lacking("a", {"cpu": need}) == [lacking]


def test_memory_is_planned_and_given_back():
    shared, need = room(), {"cpu": replace(SMALL, ram=6 * GB)}
    assert shared.place("a", need, threads=1) is not None
    assert shared.place("b", need, threads=1) is None
    shared.give_back("a")
    assert shared.place("b", need, threads=1) is not None


def test_the_cores_and_the_gpu_memory_of_a_run_are_given_back_where_they_were_taken():
    shared = Room(HARDWARE, ["cuda:0", "cuda:1"], cores=range(4))
    need = dict.fromkeys(("cuda:0", "cuda:1"), replace(SMALL, cores=2, vram=15 * GB))
    first, second = (shared.place(name, need, threads=1) for name in "ab")
    assert [each and each.device for each in (first, second)] == ["cuda:1", "cuda:0"]
    shared.give_back("a")
    assert shared.place("c", need, threads=1) == first


def test_the_disk_is_measured_less_what_the_present_runs_may_still_write():
    shared, need = room(), {"cpu": replace(SMALL, disk=40 * GB)}
    shared.place("a", need, threads=1)
    shared.disk.set_measured(70 * GB)
    assert shared.lacking("b", need) == ["disk"]


def test_what_a_run_has_written_is_not_promised_to_it_once_more():
    written = {"a": 0, "b": 0}
    shared = Room(HARDWARE, ["cpu"], cores=range(4), disk=Disk(100 * GB, written.__getitem__))
    need = {"cpu": replace(SMALL, disk=60 * GB)}
    shared.place("a", need, threads=1)
    assert shared.lacking("b", need) == ["disk"]
    written["a"] = 60 * GB
    shared.disk.set_measured(60 * GB)
    assert shared.lacking("b", need) == []


def test_a_run_that_is_taken_from_a_silent_machine_keeps_its_promise_when_that_one_ends():
    disk, need = Disk(200 * GB), {"cpu": replace(SMALL, disk=60 * GB)}
    silent, other = (Room(HARDWARE, ["cpu"], cores=range(4), disk=disk) for _ in range(2))
    silent.place("a", need, threads=1)
    other.place("a", need, threads=1)
    silent.give_all_back()
    disk.set_measured(100 * GB)
    assert disk.free_bytes == 40 * GB
    other.give_back("a")


def test_a_run_that_goes_on_needs_only_the_rest_of_its_plan():
    disk = Disk(50 * GB, lambda name: 20 * GB)
    shared = Room(HARDWARE, ["cpu"], cores=range(4), disk=disk)
    assert shared.place("a", {"cpu": replace(SMALL, disk=60 * GB)}, threads=1) is not None


@pytest.mark.fault("P16")
def test_the_gpu_with_most_free_memory_is_taken():
    shared = Room(HARDWARE, ["cuda:0", "cuda:1"], cores=range(4))
    need = dict.fromkeys(("cuda:0", "cuda:1"), replace(SMALL, vram=9 * GB))
    placed = [shared.place(name, need, threads=1) for name in "abcd"]
    assert [each and each.device for each in placed] == ["cuda:1", "cuda:0", "cuda:1", None]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("auto", ("cuda:0", "cuda:1")),
        ("cuda", ("cuda:0", "cuda:1")),
        ("cuda:1", ("cuda:1",)),
        ("cpu", ("cpu",)),
    ],
)
def test_devices_are_those_that_the_option_names(name: str, found: tuple[str, ...]):
    assert devices_of(name, HARDWARE) == found


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="device 'cuda:2' is not available: found 2 CUDA devices"):
        devices_of("cuda:2", HARDWARE)


PLAIN, ONE_GPU = (replace(HARDWARE, gpus=gpus) for gpus in ((), (GPU,)))


@pytest.mark.parametrize(
    ("name", "nodes", "chosen"),
    [
        ("auto", [PLAIN, ONE_GPU], ONE_GPU),
        ("cuda:1", [PLAIN, ONE_GPU, HARDWARE], HARDWARE),
        ("cpu", [PLAIN], PLAIN),
    ],
)
def test_a_sweep_is_planned_by_the_node_that_has_its_device(
    name: str, nodes: list[Hardware], chosen: Hardware
):
    assert hardware_with_device(name, nodes) == chosen


def test_a_device_that_no_node_has_is_refused():
    with pytest.raises(UserError, match="device 'cuda:1' is not available on any of 2 nodes"):
        hardware_with_device("cuda:1", [PLAIN, ONE_GPU])


def test_a_device_file_shows_that_there_may_be_a_gpu(tmp_path: Path):
    assert not may_have_gpus(tmp_path)
    (tmp_path / "nvidia0").touch()
    assert may_have_gpus(tmp_path)
