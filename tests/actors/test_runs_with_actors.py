"""Whole runs with actors, as `dqn train` and `dqn resume` make them."""

from pathlib import Path

import pytest
from lockstep import R2D2
from tiny import CPU, run

from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import launch
from atari_dqn.train.resume_exactness import why_not_restored

ACTORS = ("env.num_envs=4", "actors.processes=2", "actors.fragment_steps=5", "checkpoint.keep_last=9")
LOCKSTEP = (*ACTORS, "actors.mode=lockstep", "actors.sync_period_steps=10")
FREE = (*ACTORS, "actors.mode=free_running", "actors.error_buffer_steps=60")


def resume(path: Path, checkpoint: str) -> dict[str, object]:
    return launch.resume(
        RunDirectory.open(path), device=CPU, views=[], total_frames=None, checkpoint=checkpoint,
        discard_later=True,
    )  # fmt: skip


def logs(path: Path) -> dict[str, str]:
    tables = path.rglob("*.csv")
    return {table.name: table.read_text() for table in tables if table.stem != "throughput_log"}


@pytest.mark.fault("M08")
@pytest.mark.slow
def test_a_lockstep_run_that_is_resumed_is_the_same_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    whole = run(path, *LOCKSTEP, *R2D2)
    before = logs(path)
    checkpoints = sorted(each.name for each in (path / "checkpoints").glob("step_*"))
    assert len(checkpoints) >= 2
    resumed = resume(path, checkpoints[0])
    assert resumed["state_digest"] == whole["state_digest"]
    assert logs(path) == before
    assert list(why_not_restored(RunDirectory.open(path))) == []


@pytest.mark.slow
def test_a_free_running_run_is_resumed_and_says_what_is_not_exact(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(path, *FREE)
    checkpoints = sorted(each.name for each in (path / "checkpoints").glob("step_*"))
    resumed = resume(path, checkpoints[0])
    assert resumed["step"] >= 300
    (reason,) = why_not_restored(RunDirectory.open(path))
    assert "its actors begin anew with the learner's weights" in reason
