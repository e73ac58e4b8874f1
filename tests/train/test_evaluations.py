"""An interrupted evaluation continues with its remaining games, and a lost worker ends it at once."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tiny import CPU, run

from atari_dqn.errors import InfrastructureError, InterruptedRunError
from atari_dqn.record.recording import load_recording
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Progress
from atari_dqn.train import evaluation_videos, launch

SHORT = (
    "training.total_frames=400", "evaluation.light_period_frames=9999", "system.evaluation_envs=2",
    "evaluation.full_period_frames=9999", "evaluation.full_episodes=5",
)  # fmt: skip


class At:
    """A view that does something once, as soon as two games of an evaluation have finished."""

    def __init__(self, kind: str, action: Callable[[], None]) -> None:
        self.kind, self.action, self.done = kind, action, False

    def handle(self, event: Event) -> None:
        awaited = isinstance(event, Progress) and event.activity == f"{self.kind} evaluation"
        if awaited and event.done == 2 and not self.done:
            self.done = True
            self.action()

    def close(self) -> None:
        pass


class Done:
    """A view that records the reported numbers of finished games."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def handle(self, event: Event) -> None:
        if isinstance(event, Progress):
            self.done.append(event.done)

    def close(self) -> None:
        pass


def terminate() -> None:
    signal.raise_signal(signal.SIGTERM)


def resume(path: Path, view: Done) -> None:
    launch.resume(RunDirectory.open(path), device=CPU, views=[view], total_frames=None)


def evaluation(path: Path) -> dict[str, object]:
    events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [event["data"] for event in events if event["kind"] == "evaluation"][-1]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unbroken") / "run"
    run(path, *SHORT)
    return path


@pytest.mark.fault("H02")
def test_interrupted_evaluation_plays_only_the_missing_games(tmp_path: Path, unbroken: Path) -> None:
    path, done = tmp_path / "run", Done()
    with pytest.raises(InterruptedRunError):
        run(path, *SHORT, views=[At("final", terminate)])
    resume(path, done)
    assert done.done == [2, 3, 4, 5]
    assert evaluation(path) == evaluation(unbroken)
    assert (path / "eval_log.csv").read_bytes() == (unbroken / "eval_log.csv").read_bytes()


def test_crashed_evaluation_plays_only_the_missing_games(tmp_path: Path, unbroken: Path) -> None:
    def crash() -> None:
        raise RuntimeError("a crash")

    path, done = tmp_path / "run", Done()
    with pytest.raises(RuntimeError, match="a crash"):
        run(path, *SHORT, views=[At("final", crash)])
    resume(path, done)
    assert done.done == [2, 3, 4, 5]
    assert evaluation(path) == evaluation(unbroken)


def test_run_that_is_finished_keeps_no_progress(unbroken: Path) -> None:
    assert not (unbroken / "evaluation_progress.jsonl").exists()


@pytest.mark.slow
def test_recording_of_a_resumed_evaluation_shows_the_same_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation_videos, "_NEEDED", ("a_package_of_no_one",))  # no video is rendered
    shown = []
    for name, views in (("broken", [At("final", terminate)]), ("unbroken", [])):
        path = tmp_path / name
        try:
            run(path, *SHORT, "system.evaluation_video=true", views=views)
        except InterruptedRunError:
            resume(path, Done())
        (recording,) = sorted((path / "videos").glob("*.json"))
        shown.append(load_recording(recording).games[0])
    assert shown[0].result == shown[1].result
    assert shown[0].episode == shown[1].episode
    assert shown[0].trace.actions.tolist() == shown[1].trace.actions.tolist()


def kill_a_worker() -> None:
    worker = multiprocessing.active_children()[0]
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()


@pytest.mark.slow
def test_worker_lost_during_an_evaluation_ends_it_before_the_next_game(
    tmp_path: Path, unbroken: Path
) -> None:
    path, done = tmp_path / "run", Done()
    with pytest.raises(
        InfrastructureError, match=r"worker 0 .* SIGKILL; 2 of 5 games of the final evaluation are kept"
    ):
        run(path, *SHORT, "env.num_envs=1", "system.workers=1", views=[done, At("final", kill_a_worker)])
    assert done.done == [0, 1, 2]
    resume(path, done)
    assert done.done[3:] == [2, 3, 4, 5]
    assert pl.read_csv(path / "eval_log.csv").equals(pl.read_csv(unbroken / "eval_log.csv"))
