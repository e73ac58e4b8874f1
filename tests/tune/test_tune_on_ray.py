"""A tune on Ray has the trials and the best spec of a tune on one machine; runs are stopped one by one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sweeping import program, remains_of_ray

from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.scale.tuning.folder import TuneFolder, read_tune_record
from atari_dqn.scale.tuning.study import TrialLog

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc"),
]

TINY = Path(__file__).parents[1] / "tiny_catch.toml"
AT_FRAMES, TOTAL_FRAMES = 600, 10_000_000
TEXT = f"""
spec = "{TINY}"
[set]
training.total_frames = {TOTAL_FRAMES}
[space]
toggles.n_step = {{ choice = [1, 2] }}
[objective]
score = "mean_length_frames"
at_frames = {AT_FRAMES}
[sampler]
random_trials = 2
[budget]
trials = 3
"""
"""A tune whose runs would take hours if they were not stopped after the evaluation that counts."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tunes")
    (place / "mine.toml").write_text(TEXT)
    return place


@pytest.fixture(scope="module")
def on_ray(place: Path) -> subprocess.CompletedProcess[str]:
    return program("tune", "mine.toml", "--on", "ray", "--folder", "ray", "--plain", folder=place)


def outcome(path: Path) -> dict[str, Any]:
    folder = TuneFolder(path)
    trials = TrialLog(folder, read_tune_record(folder).tune, writable=False).trials()
    best = {path.name: path.read_text() for path in folder.best.iterdir()}
    return {"trials": [str(trial) for trial in trials], "best": best, "table": folder.table.read_text()}


def test_a_tune_on_ray_has_the_trials_and_the_best_spec_of_one_machine(
    place: Path, on_ray: subprocess.CompletedProcess[str]
):
    assert on_ray.returncode == 0, on_ray.stderr
    here = program("tune", "mine.toml", "--folder", "here", "--plain", folder=place)
    assert here.returncode == 0, here.stderr
    assert outcome(place / "ray") == outcome(place / "here")
    assert len(outcome(place / "ray")["trials"]) == 3


def test_a_tune_on_ray_leaves_no_lease_and_no_process(place: Path, on_ray: subprocess.CompletedProcess[str]):
    runs: SweepFolder = TuneFolder(place / "ray").runs
    assert list(runs.leases.path.iterdir()) == []
    assert list(runs.commands.path.iterdir()) == []
    assert remains_of_ray(place) == []
