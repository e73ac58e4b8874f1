"""What a start and a resume do around the training: notices, leftovers on disk, the end by an error."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from power_cut import PowerCut
from tiny import CPU, FEW_STEPS, run, tiny

from atari_dqn.envs.pool import WorkerDiedError
from atari_dqn.errors import DiskFullError, InfrastructureError
from atari_dqn.machine.automatic import Choice
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Notice, Row
from atari_dqn.telemetry.sinks.options import SinkOptions
from atari_dqn.telemetry.writers import TableSink
from atari_dqn.train import launch
from atari_dqn.train.interrupt import SignalGuard
from atari_dqn.train.recent_minibatches import RecentMinibatches
from atari_dqn.train.run_session import run_to_end
from atari_dqn.train.session import Session


def resume(path: Path, total_frames: int | None = None) -> None:
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=total_frames)


def test_values_chosen_for_the_machine_are_in_the_event_log(tmp_path: Path) -> None:
    choice = Choice(key="learner.threads", value=1, reason="one core")
    origin = launch.Origin(command_line=["dqn"], hardware=find_hardware(tmp_path), choices=[choice])
    launch.start(tiny(*FEW_STEPS), tmp_path / "run", device=CPU, views=[], origin=origin)
    lines = [json.loads(line) for line in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    messages = [line["message"] for line in lines if line["kind"] == "auto"]
    assert messages == ["chosen for this machine: learner.threads = 1 (one core)"]


class EndsWith:
    """A session that an error ends, with checkpoints at some steps."""

    def __init__(self, error: Exception, *steps: int) -> None:
        self.error = error
        self.training = SimpleNamespace(clock=SimpleNamespace(steps=1_500, env_frames=6_000))
        self.sinks = SimpleNamespace(handle=lambda event: None, handle_failure=lambda event: None)
        self.checkpoints = SimpleNamespace(catalog=lambda: [SimpleNamespace(step=step) for step in steps])
        self.notices: list[tuple[str, str]] = []

    def run(self, guard: SignalGuard) -> str:
        raise self.error

    def notice(self, kind: str, message: str) -> None:
        self.notices.append((kind, message))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [((900, 1_200), "continues from step 1,200"), ((), "starts again: nothing was saved")],
)
def test_run_that_a_dead_worker_ends_says_where_it_continues(
    tmp_path: Path, steps: tuple[int, ...], expected: str
) -> None:
    session = cast(Session, EndsWith(WorkerDiedError("worker 0 ended"), *steps))
    with pytest.raises(InfrastructureError) as ended:
        run_to_end(session, tiny(), RunDirectory(tmp_path), SignalGuard())
    assert str(ended.value) == f"worker 0 ended; `dqn resume {tmp_path}` {expected}"


def test_dead_worker_is_in_the_event_log(tmp_path: Path) -> None:
    session = EndsWith(WorkerDiedError("worker 0 ended"))
    with pytest.raises(InfrastructureError):
        run_to_end(cast(Session, session), tiny(), RunDirectory(tmp_path), SignalGuard())
    assert session.notices == [("worker died", "worker 0 ended")]


def test_run_that_a_full_disk_ends_says_where_it_continues(tmp_path: Path) -> None:
    session = cast(Session, EndsWith(DiskFullError("no space left"), 900, 1_200))
    with pytest.raises(DiskFullError) as ended:
        run_to_end(session, tiny(), RunDirectory(tmp_path), SignalGuard())
    assert ended.value.__notes__ == [
        f"once there is space, `dqn resume {tmp_path}` continues from step 1,200"
    ]


def test_error_that_ends_a_run_reaches_the_sinks_that_still_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space_for_tables(_: TableSink, event: Event) -> None:
        if isinstance(event, Row) or (isinstance(event, Notice) and event.kind == "failed"):
            raise DiskFullError("no space left\nfor update_log.csv")

    monkeypatch.setattr(TableSink, "handle", no_space_for_tables)
    options = SinkOptions(notify=f'echo "$DQN_EVENT|$DQN_MESSAGE" > {tmp_path}/sent')
    with pytest.raises(DiskFullError):
        run(tmp_path / "run", *FEW_STEPS, sink_options=options)
    assert (tmp_path / "sent").read_text() == "failed|no space left for update_log.csv\n"


def test_minibatch_of_a_replay_that_was_not_saved_is_not_gathered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Any] = []
    run(tmp_path / "run", *FEW_STEPS, "checkpoint.replay=false")
    monkeypatch.setattr(RecentMinibatches, "load_state_dict", lambda recent, state: loaded.append(state))
    resume(tmp_path / "run", 84)
    assert loaded == [None]


def test_checkpoint_that_a_kill_left_incomplete_is_removed_though_it_was_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_power(*_: object) -> str:
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", no_power)
        with pytest.raises(PowerCut):
            run(tmp_path / "run", *FEW_STEPS)
    left = tmp_path / "run/checkpoints/.step_000000007.partial"
    left.mkdir()
    resume(tmp_path / "run")
    assert not left.exists()
