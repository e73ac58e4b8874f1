"""Whatever is killed during a tune, its trials and its outcome are those of an undisturbed one."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from atari_dqn.scale.tuning.folder import TuneFolder, read_tune_record
from atari_dqn.scale.tuning.study import TrialLog

pytestmark = pytest.mark.slow

DQN = (sys.executable, "-m", "atari_dqn")
PATIENCE_SECONDS = 300.0
KILLS = 2
PLANTED = """
spec = "catch_2_n_step"

[set]
env.num_envs = 16
replay.capacity_steps = 4_000
replay.prefill_steps = 200
network.hidden_units = 64
learner.target_period_updates = 50
training.total_frames = 6_000
evaluation.full_period_frames = 3_000
evaluation.full_episodes = 10
evaluation.light_episodes = 1
exploration.epsilon_decay_frames = 3_000

[space]
optimizer.learning_rate = { choice = [1e-9, 1e-8, 1e-7, 1e-3] }

[sampler]
random_trials = 4

[budget]
trials = 30
"""
"""A tune in which one learning rate is right, and the others change nothing."""


def start(words: Sequence[str | Path], core: int, output: Path) -> subprocess.Popen[bytes]:
    """Start `dqn tune`, which trains on one core; its output is appended to a file."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(before)[core % len(before)]})
    try:
        with output.open("ab") as file:
            command = [*DQN, "tune", *map(str, words), "--plain"]
            return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    finally:
        os.sched_setaffinity(0, before)


def trains(folder: Path) -> bool:
    """Return whether a run of a tune has written a row."""
    return any(len(path.read_text().splitlines()) > 1 for path in folder.glob("runs/*/update_log.csv"))


def wait_until_it_trains(folder: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not trains(folder):
        assert time.monotonic() < until, "no run begins"
        time.sleep(0.05)


def outcome(folder: Path) -> dict[str, object]:
    """Return all that must be the same of a tune."""
    found = TuneFolder(folder)
    trials = TrialLog(found, read_tune_record(found).tune, writable=False).trials()
    best = {path.name: path.read_text() for path in found.best.iterdir()}
    return {"trials": [str(trial) for trial in trials], "best": best, "table": found.table.read_text()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("trials", [12, pytest.param(30, marks=pytest.mark.thorough)])
def test_a_tune_killed_twice_has_the_same_best_trial_which_is_the_planted_optimum(
    trials: int, tmp_path: Path
):
    path, chance = tmp_path / "planted.toml", random.Random()
    path.write_text(PLANTED.replace("trials = 30", f"trials = {trials}"))
    whole, killed, output = tmp_path / "whole", tmp_path / "killed", tmp_path / "output.txt"
    undisturbed = start([path, "--folder", whole], 0, output)
    for _ in range(KILLS):
        process = start([path, "--folder", killed], 1, output)
        wait_until_it_trains(killed)
        time.sleep(chance.uniform(0.0, 4.0))
        assert process.poll() is None, output.read_text()
        process.kill()
        process.wait()
    assert start([killed], 1, output).wait(PATIENCE_SECONDS) == 0, output.read_text()
    assert undisturbed.wait(PATIENCE_SECONDS) == 0, output.read_text()
    found = outcome(whole)
    assert outcome(killed) == found
    assert len(found["trials"]) == trials  # type: ignore[arg-type]
    assert "learning_rate = 0.001" in found["best"]["planted_best1.toml"]  # type: ignore[index]
    events = [path.read_text() for path in killed.glob("runs/*/events.jsonl")]
    assert [text.count('"kind": "started"') for text in events] == [1] * 4
    assert list(TuneFolder(killed).runs.leases.path.iterdir()) == []


def test_sigterm_saves_the_runs_and_the_command_that_is_printed_goes_on(tmp_path: Path):
    path, folder, output = tmp_path / "planted.toml", tmp_path / "tune", tmp_path / "output.txt"
    path.write_text(PLANTED.replace("trials = 30", "trials = 1"))
    process = start([path, "--folder", folder], 0, output)
    wait_until_it_trains(folder)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 143
    assert f"runs that have a checkpoint go on from it; `dqn tune {folder}` continues" in output.read_text()
    assert list(folder.glob("runs/*/checkpoints/step_*")) != []
    assert list(TuneFolder(folder).runs.leases.path.iterdir()) == []
    assert start([folder], 0, output).wait(PATIENCE_SECONDS) == 0
    assert "planted: 1 complete, of a budget of 1 trial;" in output.read_text()
