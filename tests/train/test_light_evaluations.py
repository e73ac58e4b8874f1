"""Light evaluations that do not pause a run with actors: when they are begun, logged, and due again."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tiny import CPU, tiny

from atari_dqn.actors.inline import InlineActors
from atari_dqn.errors import InterruptedRunError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.checkpoint.manifest import read_manifest
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.recorded_scores import recorded_scores
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.telemetry.events import Event, Progress, Row, Sink
from atari_dqn.train import launch, light_evaluations

FREE = (
    "env.num_envs=4", "actors.processes=2", "actors.fragment_steps=5", "actors.mode=free_running",
    "actors.error_buffer_steps=60", "system.actors_per_core=2", "evaluation.full_period_frames=9999",
    "evaluation.full_episodes=2", "checkpoint.keep_last=9",
)  # fmt: skip
GAME = EvaluationEpisode(episode_return=3.0, length_frames=80, end_reason="game_over")
NEVER = 10**9


class SlowEvaluator:
    """An evaluator whose games arrive when it has been asked for them a number of times."""

    calls = 0
    pid = 4711

    def __init__(self, *_: Any, **__: Any) -> None:
        self.left = 0

    def order(self, version: int, flat: Any) -> None:
        self.left = self.calls

    def games(self, timeout_seconds: float) -> tuple[EvaluationEpisode, ...] | None:
        self.left -= 1
        return (GAME, GAME) if self.left < 0 else None

    def close(self) -> None:
        pass


class Rows:
    """A view that keeps the table and step of each row, and calls something with each."""

    def __init__(self, action: Callable[[Row], None] = lambda row: None) -> None:
        self.found: list[tuple[str, int]] = []
        self.action = action

    def handle(self, event: Event) -> None:
        if isinstance(event, Row):
            self.found.append((event.table, int(event.values["step"])))
            self.action(event)

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def evaluator(monkeypatch: pytest.MonkeyPatch) -> type[SlowEvaluator]:
    monkeypatch.setattr(light_evaluations, "Evaluator", SlowEvaluator)
    monkeypatch.setattr(SlowEvaluator, "calls", 30)
    monkeypatch.setattr(light_evaluations, "_WAIT_SECONDS", 0.0)
    return SlowEvaluator


def train(path: Path, *overrides: str, view: Sink | None = None) -> dict[str, Any]:
    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(path))
    return launch.start(
        tiny(*FREE, *overrides), path, device=CPU, views=[view] if view else [], origin=origin,
        make_actors=InlineActors,
    )  # fmt: skip


def resume(path: Path) -> None:
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=None, make_actors=InlineActors)


def light_frames(path: Path) -> list[int]:
    scores = pl.read_csv(path / "eval_log.csv").filter(eval_type="light")
    return scores["env_frames"].to_list()


def periods(path: Path) -> list[int]:
    return [frames // 300 for frames in light_frames(path)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """A run of which every evaluation arrives before the next is due, and its rows."""
    path, view = tmp_path_factory.mktemp("whole") / "run", Rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(light_evaluations, "Evaluator", SlowEvaluator)
        patch.setattr(SlowEvaluator, "calls", 30)
        train(path, view=view)
    return path, view


def test_the_learner_makes_updates_while_an_evaluation_is_played(whole: tuple[Path, Rows]) -> None:
    rows = whole[1].found
    before = rows[: rows.index(("eval_log", 76))]
    assert max(step for table, step in before if table == "update_log") > 76


def test_each_period_has_one_score_in_the_order_of_steps(whole: tuple[Path, Rows]) -> None:
    assert light_frames(whole[0]) == [304, 608, 904]
    assert pl.read_csv(whole[0] / "eval_log.csv")["step"].is_sorted()


def test_a_score_and_its_games_have_the_step_of_the_weights(whole: tuple[Path, Rows]) -> None:
    scores = recorded_scores(RunDirectory.open(whole[0]))
    light = {score.step: score.returns for score in scores if score.kind == "light"}
    assert light == dict.fromkeys((76, 152, 226), (3.0, 3.0))


def test_an_evaluation_that_is_late_is_waited_for_before_the_next(tmp_path: Path, evaluator) -> None:
    evaluator.calls = 1000
    train(tmp_path / "run")
    assert light_frames(tmp_path / "run") == [304, 608, 904]


def test_an_evaluator_that_is_long_waited_for_is_named(
    tmp_path: Path, evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator.calls = 1000
    monkeypatch.setattr(light_evaluations, "_MANY_WAITS", 20)
    train(tmp_path / "run")
    said = (tmp_path / "run/events.jsonl").read_text()
    assert "for the light evaluation of step 76, which process 4711 plays" in said


def test_a_full_evaluation_counts_as_the_light_one_of_its_period(tmp_path: Path) -> None:
    train(tmp_path / "run", "evaluation.full_period_frames=600", "evaluation.full_episodes=2")
    assert periods(tmp_path / "run") == [1, 3]


def crash_after_a_checkpoint(path: Path) -> Path:
    """Train until an evaluation, which does not arrive, is open at a checkpoint, and some steps more."""

    def crash(row: Row) -> None:
        if row.table == "update_log" and row.values["step"] > 100:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(path, "checkpoint.period_frames=360", view=Rows(crash))
    (checkpoint,) = (path / "checkpoints").glob("step_*")
    return checkpoint


def test_an_evaluation_that_is_open_at_a_checkpoint_is_due_there(tmp_path: Path, evaluator) -> None:
    evaluator.calls = NEVER
    checkpoint = crash_after_a_checkpoint(tmp_path / "run")
    assert read_manifest(checkpoint)["bookkeeping"]["light"] == {"passed": 0}


def test_an_evaluation_that_a_kill_interrupts_is_played_after_the_resume(tmp_path: Path, evaluator) -> None:
    path, evaluator.calls = tmp_path / "run", NEVER
    checkpoint = crash_after_a_checkpoint(path)
    assert light_frames(path) == []
    evaluator.calls = 30
    resume(path)
    first, *_ = light_frames(path)
    assert checkpoint.name == f"step_{first // 4:09d}"
    assert periods(path) == [1, 2, 3]


def test_a_signal_ends_the_wait_for_an_evaluation(tmp_path: Path, evaluator) -> None:
    path, evaluator.calls = tmp_path / "run", NEVER

    class AtTheWait(Rows):
        def handle(self, event: Event) -> None:
            if isinstance(event, Progress) and event.activity == "light evaluation":
                signal.raise_signal(signal.SIGTERM)

    with pytest.raises(InterruptedRunError):
        train(path, view=AtTheWait())
    evaluator.calls = 30
    resume(path)
    assert light_frames(path)[0] == 608, "one evaluation of the same weights is that of both periods"
