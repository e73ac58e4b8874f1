"""Whole runs with actors, as `dqn train` and `dqn resume` make them."""

import signal
from pathlib import Path

import pytest
from lockstep import R2D2
from tiny import CPU, run, tiny

from atari_dqn.actors.inline import InlineActors
from atari_dqn.errors import InterruptedRunError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.checkpoint.store import load_checkpoint
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.logged_events import logged_events
from atari_dqn.spec.schema import Spec
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


def with_an_actor_that_has_ended(spec: Spec) -> InlineActors:
    actors = InlineActors(spec)
    actors.records[1].ended(0.0, "actor 1 was killed by signal 9", steps_played=0)
    return actors


def test_the_event_log_of_a_run_has_the_ends_of_its_actors(tmp_path: Path) -> None:
    path = tmp_path / "run"
    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(tmp_path))
    launch.start(
        tiny(*LOCKSTEP, "training.total_frames=400"), path, device=CPU, views=[], origin=origin,
        make_actors=with_an_actor_that_has_ended,
    )  # fmt: skip
    found = [event.message for event in logged_events(path / "events.jsonl") if event.kind == "actor ended"]
    assert found == ["actor 1 was killed by signal 9; it is started again (restart 1)"]


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


class EndsAfterACheckpoint(InlineActors):
    """Actors that send nothing after the checkpoint of step 150, until the user presses Ctrl-C."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self.waits = 0

    def receive(self, timeout_seconds: float) -> bytes | None:
        if sum(record.steps_received for record in self.records) < 150:
            return super().receive(timeout_seconds)
        self.waits += 1
        if self.waits == 20:
            signal.raise_signal(signal.SIGINT)
        return None


def test_updates_since_the_checkpoint_of_a_step_are_saved_when_the_run_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "run"
    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(tmp_path))
    keys = (*FREE, "evaluation.light_period_frames=9999", "evaluation.full_period_frames=9999")
    with pytest.raises(InterruptedRunError):
        launch.start(
            tiny(*keys, "checkpoint.period_frames=600"), path, device=CPU, views=[], origin=origin,
            make_actors=EndsAfterACheckpoint,
        )  # fmt: skip
    saved = [event for event in logged_events(path / "events.jsonl") if event.kind == "checkpoint"]
    assert saved[0].message == saved[1].message  # of the same step
    assert saved[0].data["state_digest"] != saved[1].data["state_digest"]
    state, _ = load_checkpoint(path / "checkpoints" / "latest")
    assert tree_digest(state) == saved[1].data["state_digest"]
