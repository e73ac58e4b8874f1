"""Whatever is killed or stopped during a sweep, its runs are those of an undisturbed one, to the last bit."""

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import msgspec
import pytest
from forked import CommandServer
from sweeping import (
    DQN,
    HEARTBEAT_SECONDS,
    METHODS,
    PATIENCE_SECONDS,
    SPEC,
    all_differences,
    finish,
    kill,
    outcomes,
    processes_of,
    random_sweep_kill,
    start,
    stopped,
    times_trained,
    trainings,
    write_sweep,
)

from atari_dqn.run.checkpoint.manifest import read_manifest
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.guard import LOST_EXIT_CODE, lease_environment
from atari_dqn.run.leases.lease import HeldLease, LeaseFolder
from atari_dqn.run.leases.owner import Owner, start_time
from atari_dqn.run.lock import LOCK
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.scale.takeover import take_over

pytestmark = pytest.mark.slow

KILLS = 5


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of each file of the runs in a folder, apart from the sweep's own."""
    files = [path for path in folder.rglob("*") if path.is_file() and folder / "sweep" not in path.parents]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def wait_until(happened: object, what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < until, what
        time.sleep(0.02)


def has_trained(folder: Path) -> bool:
    return any(len(path.read_text().splitlines()) > 3 for path in folder.glob("*/update_log.csv"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a sweep file of two runs."""
    return write_sweep(tmp_path_factory.mktemp("sweep file"), games=["pong"], seeds=1)


@pytest.fixture(scope="module")
def undisturbed(sweep: Path) -> dict[str, dict[str, object]]:
    finish(sweep, sweep.parent / "whole")
    return outcomes(sweep.parent / "whole")


def digests_alone(
    folder: Path, command_server: CommandServer, games: list[str], seeds: int
) -> dict[str, str]:
    """Train each run of a sweep by itself and return its state digest."""
    found = {}
    for method, game, seed in product(METHODS, games, range(1, seeds + 1)):
        keys = [f"game={game}", f"seed={seed}", *METHODS[method]]
        sets = [word for key in keys for word in ("--set", key)]
        run = folder / f"{method}_{game}_seed{seed}"
        assert command_server.run("train", SPEC, *sets, "--run-dir", run, "--plain").code == 0
        found[run.name] = digest(run)
    return found


def test_the_runs_of_a_sweep_have_the_digests_of_train_alone(
    sweep: Path, undisturbed: dict[str, dict[str, object]], tmp_path: Path, command_server: CommandServer
):
    alone = digests_alone(tmp_path, command_server, ["pong"], seeds=1)
    assert {name: digest(sweep.parent / "whole" / name) for name in undisturbed} == alone


@pytest.mark.thorough
@pytest.mark.timeout(3_000)
def test_24_runs_have_the_digests_of_train_alone(tmp_path: Path, command_server: CommandServer):
    games = ["pong", "breakout", "qbert", "seaquest"]
    finish(write_sweep(tmp_path, games=games, seeds=3), tmp_path / "runs", patience_seconds=1_500)
    alone = digests_alone(tmp_path / "alone", command_server, games, seeds=3)
    assert len(alone) == 24
    assert {name: digest(tmp_path / "runs" / name) for name in alone} == alone


def digest(run: Path) -> str:
    return str(read_manifest(CheckpointStore(run / "checkpoints").latest())["state_digest"])


def test_a_sweep_whose_runner_and_trainings_are_killed_equals_one_that_nothing_killed(
    sweep: Path, undisturbed: dict[str, dict[str, object]], tmp_path: Path
):
    folder, chance = tmp_path / "runs", random.Random(1)
    process = start(sweep, folder)
    for _ in range(KILLS):
        if not kill(process, folder, random_sweep_kill(chance)):
            break
        if process.poll() is not None:
            process = start(sweep, folder)
    assert process.wait(PATIENCE_SECONDS) == 0
    assert all_differences(folder, undisturbed) == []
    assert list(SweepFolder(folder).leases.path.iterdir()) == []
    assert processes_of(folder) == []
    finish(folder, folder)
    assert max(times_trained(folder).values()) == 1


def test_an_owner_that_was_stopped_and_goes_on_writes_nothing_to_runs_that_were_taken_over(
    sweep: Path, undisturbed: dict[str, dict[str, object]], tmp_path: Path
):
    folder = tmp_path / "runs"
    first = start(sweep, folder)
    wait_until(lambda: has_trained(folder), "no run begins")
    groups = trainings(folder)
    with stopped(first.pid, *groups):
        finish(folder, folder)
        before = contents(folder)
    assert first.wait(PATIENCE_SECONDS) == 0
    assert contents(folder) == before
    assert all_differences(folder, undisturbed) == []
    assert list(SweepFolder(folder).leases.path.iterdir()) == []


def test_a_training_that_cannot_be_killed_from_here_ends_without_writing_once_its_run_is_taken_over(
    tmp_path: Path,
):
    # as on another host: nothing reaches the process, which must notice by itself
    leases, run = LeaseFolder(tmp_path / "leases"), tmp_path / "run"
    leases.path.mkdir()
    elsewhere = replace(Owner.current(), machine="another machine")
    held = leases.take("run", elsewhere)
    assert held is not None
    with training("train", SPEC, "--run-dir", run, held=held) as child:
        wait_until(lambda: has_trained(tmp_path), "the run does not begin")
        started = start_time(child.pid)
        assert started is not None
        held.set_process(child.pid, started)
        with stopped(child.pid):
            stale = leases.current()["run"]
            thief = leases.take("run", Owner.current(), over=stale)
            assert thief is not None
            holder = replace(elsewhere, pid=child.pid, started=started)
            (run / LOCK).write_bytes(msgspec.json.encode(holder))
            take_over(RunDirectory(run), stale, thief)
            with training("resume", run, held=thief) as other:
                assert other.wait(PATIENCE_SECONDS) == 0
            before = contents(run)
        assert child.wait(PATIENCE_SECONDS) == LOST_EXIT_CODE
    assert contents(run) == before
    assert json.loads((run / "summary.json").read_text())["env_frames"] == 4_800


def training(*words: object, held: HeldLease) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **lease_environment(held), "OMP_NUM_THREADS": "1"}
    command = [*DQN, *map(str, words), "--plain"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_sigterm_saves_every_run_and_the_command_that_is_printed_goes_on(
    sweep: Path, undisturbed: dict[str, dict[str, object]], tmp_path: Path
):
    folder = tmp_path / "runs"
    process = start(sweep, folder)
    wait_until(lambda: has_trained(folder), "no run begins")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 143
    printed = (tmp_path / "runs.command.txt").read_text()
    assert f"of them with a checkpoint; `dqn sweep {folder}` continues" in printed
    assert list(SweepFolder(folder).leases.path.iterdir()) == []
    assert list(folder.glob("*/checkpoints/step_*")) != []
    finish(folder, folder)
    assert all_differences(folder, undisturbed) == []


@pytest.mark.thorough
def test_a_takeover_takes_three_heartbeats_and_little_more(sweep: Path, tmp_path: Path):
    folder = tmp_path / "runs"
    first = start(sweep, folder)
    wait_until(lambda: has_trained(folder), "no run begins")
    lost = {*trainings(folder)}
    with stopped(first.pid, *lost):
        began = time.monotonic()
        second = start(folder, folder)
        wait_until(lambda: {*trainings(folder)} - lost, "no run is taken over")
        assert (
            time.monotonic() - began < 3 * HEARTBEAT_SECONDS + 10
        )  # the command itself takes seconds to start
        second.kill()
        second.wait()
    first.kill()
    first.wait()
