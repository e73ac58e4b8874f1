"""A sweep on Ray has the runs of a sweep on one machine, whatever of Ray or of the command is killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from ray_nodes import cluster_environment, lose_node, nodes_of_ray
from sweeping import (
    PATIENCE_SECONDS,
    SPEC,
    SweepKill,
    all_differences,
    finish,
    kill,
    outcomes,
    processes_of,
    remains_of_ray,
    start,
    times_trained,
)

from atari_dqn.run.sweep.folder import SweepFolder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
]

ON_RAY = ("--on", "ray")


def wait_until(happened: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def has_trained(folder: Path) -> bool:
    return any(len(path.read_text().splitlines()) > 3 for path in folder.glob("*/update_log.csv"))


def output_of(folder: Path) -> str:
    return folder.with_name(f"{folder.name}.command.txt").read_text()


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep file") / "small.toml"
    path.write_text(f'spec = "{SPEC}"\nseeds = 2\n[methods.plain]\n[methods.more.toggles]\ndouble = true\n')
    return path


@pytest.fixture(scope="module")
def undisturbed(sweep: Path) -> dict[str, dict[str, object]]:
    finish(sweep, sweep.parent / "whole")
    return outcomes(sweep.parent / "whole")


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    for process in psutil.Process().children():
        if "sweep" in process.cmdline():
            process.kill()
            process.wait()
    wait_until(lambda: remains_of_ray(tmp_path) == [], "Ray leaves processes", 30.0)


@pytest.mark.parametrize(
    "victims",
    [("worker",), pytest.param(("worker", "raylet", "runner"), marks=pytest.mark.thorough)],
    ids=str,
)
def test_after_kills_of_worker_raylet_and_command_all_runs_equal_those_of_an_undisturbed_sweep(
    victims: tuple[str, ...], sweep: Path, undisturbed: dict[str, dict[str, object]], tmp_path: Path
):
    folder = tmp_path / "runs"
    process = start(sweep, folder, *ON_RAY)
    for victim in victims:
        assert kill(process, folder, SweepKill(seconds=0.3, victim=victim)), output_of(folder)
        if process.poll() is not None:
            process = start(sweep, folder, *ON_RAY)
    assert process.wait(PATIENCE_SECONDS) == 0, output_of(folder)
    assert all_differences(folder, undisturbed) == []
    assert list(SweepFolder(folder).leases.path.iterdir()) == []
    assert list(SweepFolder(folder).commands.path.iterdir()) == []
    assert max(times_trained(folder).values()) == 1
    assert processes_of(folder) == []
    assert "its Ray worker or node has ended" not in output_of(folder)  # Ray itself runs the task again
    assert ("error: the head of the Ray cluster" in output_of(folder)) == ("runner" in victims)


def test_rays_workers_import_this_package_whatever_the_current_folder_holds(sweep: Path, tmp_path: Path):
    (tmp_path / "atari_dqn").mkdir()
    (tmp_path / "atari_dqn" / "__init__.py").write_text("raise RuntimeError('another package')")
    command = [Path(sys.executable).with_name("dqn"), "sweep", sweep, "--folder", tmp_path / "runs", *ON_RAY]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_runs_on_rays_workers_have_the_priority_of_the_command(sweep: Path, tmp_path: Path):
    folder = tmp_path / "runs"
    with start(sweep, folder, *ON_RAY) as process:
        wait_until(lambda: has_trained(folder), "no run begins")
        owners = [lease.owner.pid for lease in SweepFolder(folder).leases.current().values()]
        priorities = {psutil.Process(pid).nice() for pid in owners}
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)
    assert priorities == {psutil.Process().nice()}


@pytest.mark.thorough
def test_sigterm_saves_every_run_and_the_command_that_is_printed_goes_on(
    sweep: Path, undisturbed: dict[str, dict[str, object]], tmp_path: Path
):
    folder = tmp_path / "runs"
    process = start(sweep, folder, *ON_RAY)
    wait_until(lambda: has_trained(folder), "no run begins")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 143
    assert f"of them with a checkpoint; `dqn sweep {folder} --on ray` continues" in output_of(folder)
    assert list(SweepFolder(folder).leases.path.iterdir()) == []
    assert list(folder.glob("*/checkpoints/step_*")) != []
    finish(folder, folder)
    assert all_differences(folder, undisturbed) == []


@pytest.mark.thorough
def test_the_run_of_a_node_that_is_lost_goes_on_on_another(
    sweep: Path, undisturbed: dict[str, dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in cluster_environment().items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "runs"
    monkeypatch.chdir(tmp_path)
    with nodes_of_ray(cores=[1, 1]) as (address, (_, second)):
        process = start(sweep, folder, *ON_RAY, "--address", address)
        lost: list[str] = []

        def runs_on_second() -> bool:
            leases = SweepFolder(folder).leases.current().values()
            workers = [each.pid for each in second.children()]
            lost[:] = [lease.name for lease in leases if lease.owner.pid in workers]
            return bool(lost) and (folder / lost[0] / "update_log.csv").exists()

        wait_until(runs_on_second, "nothing runs on the second node")
        lose_node(second)
        assert process.wait(PATIENCE_SECONDS) == 0, output_of(folder)
    assert all_differences(folder, undisturbed) == []
    assert max(times_trained(folder).values()) == 1
    assert f"{lost[0]}: taken over" in output_of(folder)
    assert "this node has ended" in output_of(folder)
