"""What a node is refused for, what Ray reserves for a run, and when a task may take a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.run.leases import lease
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.scale.on_ray import node
from atari_dqn.scale.on_ray.node import versions
from atari_dqn.scale.room import Need

pytest.importorskip("ray")

from atari_dqn.scale.on_ray.cluster import check_versions
from atari_dqn.scale.on_ray.site import ray_options

ELSEWHERE = replace(Owner.current(), machine="another machine")


@pytest.mark.parametrize("package", ["atari_dqn", "Python", "torch"])
def test_a_node_with_another_version_is_named(package: str):
    with pytest.raises(
        UserError, match=rf"node 7: has {package} 0\.0\.1, expected .* as here; install the same"
    ):
        check_versions("node 7", {**versions(), package: "0.0.1"}, versions())


def test_a_node_without_torch_is_named():
    with pytest.raises(UserError, match="node 7: has torch none"):
        check_versions("node 7", {**versions(), "torch": ""}, versions())


@pytest.mark.parametrize("name", ["other-agents", "code of other-agents"])
def test_a_node_with_another_package_of_parts_is_named(monkeypatch: pytest.MonkeyPatch, name: str):
    here = {"other-agents": "1.0", "code of other-agents": "0aae3e4f3914"}
    monkeypatch.setattr(node, "packages_here", lambda: here)
    with pytest.raises(UserError, match=rf"node 7: has {name} none, expected .* as here; install the same"):
        check_versions("node 7", {key: found for key, found in versions().items() if key != name}, versions())


def test_ray_reserves_cores_and_memory_of_the_plan_and_no_gpu():
    found = ray_options(Need(cores=3, ram=5_000, vram=7_000, disk=11_000))
    assert {key: found.get(key) for key in ("num_cpus", "memory", "num_gpus")} == {
        "num_cpus": 3,
        "memory": 5_000,
        "num_gpus": None,
    }


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    folder = SweepFolder(tmp_path / "sweep")
    folder.create()
    return folder


def test_a_run_without_lease_is_taken(folder: SweepFolder):
    assert node._free_lease(folder.leases, "run", None) == (True, None)


def test_a_run_whose_lease_lives_is_left_to_its_owner(folder: SweepFolder):
    held = folder.leases.take("run", ELSEWHERE)
    assert held is not None
    assert node._free_lease(folder.leases, "run", None)[0] is False


def test_a_run_is_taken_over_the_lease_that_the_command_observed_to_be_stale(folder: SweepFolder):
    held = folder.leases.take("run", ELSEWHERE)
    assert held is not None
    observed = [held.lease.token, held.lease.heartbeat]
    assert node._free_lease(folder.leases, "run", observed) == (True, held.lease)
    held.beat()
    assert node._free_lease(folder.leases, "run", observed)[0] is False


def test_a_run_of_a_worker_that_died_here_is_taken_over_at_once(folder: SweepFolder):
    dead = replace(Owner.current(), pid=2**22 + 1)
    assert folder.leases.take("run", dead) is not None
    assert node._free_lease(folder.leases, "run", None)[0] is True


def test_a_run_stops_once_the_lease_of_its_command_is_gone(folder: SweepFolder):
    command = folder.commands.take("sweep_1", ELSEWHERE)
    assert command is not None
    with node._stopping_with(folder.commands, {"command": "sweep_1", "period_seconds": 0.02}) as stop:
        assert not stop.wait(0.2)
        command.release()
        assert stop.wait(5)


def test_a_run_stops_once_the_lease_of_its_command_is_stale(folder: SweepFolder):
    assert folder.commands.take("sweep_1", ELSEWHERE, period_seconds=0.1) is not None
    with node._stopping_with(folder.commands, {"command": "sweep_1", "period_seconds": 0.02}) as stop:
        assert stop.wait(5)


def test_a_run_goes_on_while_the_lease_of_its_command_cannot_be_read(
    folder: SweepFolder, monkeypatch: pytest.MonkeyPatch
):
    assert folder.commands.take("sweep_1", ELSEWHERE) is not None
    with node._stopping_with(folder.commands, {"command": "sweep_1", "period_seconds": 0.02}) as stop:
        monkeypatch.setattr(lease, "read_lease", lambda path: None)
        assert not stop.wait(0.2)
