"""Checkpoints between evaluations are saved when due, and affect nothing else."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from power_cut import CutAt, CutOnceSaved, PowerCut
from tiny import CPU, FEW_STEPS, run, tiny_spec

from atari_dqn.cli.app import main
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.tracks import load_track
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.train import launch
from atari_dqn.train.saving import Cadence

RARELY_EVALUATED = (
    "training.total_frames=800", "evaluation.light_period_frames=9999", "evaluation.full_period_frames=9999",
)  # fmt: skip
OFTEN = (*RARELY_EVALUATED, "checkpoint.period_frames=200")


def cut(path: Path, step: int, *overrides: str) -> None:
    with pytest.raises(PowerCut):
        run(path, *overrides, views=[CutAt(step)])


def resume(path: Path, total_frames: int | None = None):
    return launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=total_frames)


def notices(path: Path, kind: str) -> list[dict]:
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def steps_saved(path: Path) -> list[int]:
    """Return the steps of the checkpoints, not those of their notices, which come later."""
    return [int(notice["message"].removeprefix("saved step ")) for notice in notices(path, "checkpoint")]


def tables(path: Path) -> dict[str, bytes]:
    return {name: (path / f"{name}.csv").read_bytes() for name in TABLES if name != "throughput_log"}


def test_run_is_saved_whenever_it_passes_a_multiple_of_its_period(tiny_run: Callable[..., Path]) -> None:
    # every 50 steps of 4 frames; at 200 steps before and after the final evaluation
    assert steps_saved(tiny_run(*OFTEN)) == [50, 100, 150, 200, 200]


@pytest.fixture(scope="module")
def lost_power(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run that lost power at step 150 and was resumed, and the checkpoint that it had then."""
    path = tmp_path_factory.mktemp("lost_power") / "run"
    with pytest.raises(PowerCut):
        run(path, *OFTEN, views=[CutAt(150, latest=(path / "checkpoints/latest", "step_000000100"))])
    latest = CheckpointStore(path / "checkpoints").latest().name
    resume(path)
    return path, latest


@pytest.mark.fault("H01")
def test_run_that_loses_power_goes_on_from_its_last_period(lost_power: tuple[Path, str]) -> None:
    path, latest = lost_power
    assert latest == "step_000000100"
    assert notices(path, "resumed")[0]["message"] == "continuing from step_000000100 on cpu"


def test_run_that_loses_power_between_evaluations_equals_one_that_did_not(
    lost_power: tuple[Path, str], tiny_run: Callable[..., Path]
) -> None:
    assert tables(lost_power[0]) == tables(tiny_run(*OFTEN))


@pytest.mark.parametrize(
    "period",
    ["checkpoint.period_frames=40", pytest.param("checkpoint.period_seconds=1e-9", marks=pytest.mark.slow)],
)
def test_tables_do_not_depend_on_how_often_a_run_is_saved(
    tmp_path: Path, period: str, tiny_run: Callable[..., Path]
) -> None:
    short = (*RARELY_EVALUATED, "training.total_frames=160", "replay.prefill_steps=16")  # 40 steps
    run(tmp_path / "often", *short, period)
    assert tables(tmp_path / "often") == tables(tiny_run(*short))


@pytest.mark.slow
def test_periods_of_zero_leave_the_checkpoints_of_evaluations(tmp_path: Path) -> None:
    off = ("checkpoint.period_frames=0", "checkpoint.period_seconds=0")
    run(tmp_path / "run", "training.total_frames=800", *off)
    assert sorted(set(steps_saved(tmp_path / "run"))) == [150, 200]


def test_newest_is_kept_besides_the_best_though_it_has_no_score(tmp_path: Path) -> None:
    with pytest.raises(PowerCut):
        run(tmp_path / "run", "checkpoint.period_frames=100", views=[CutOnceSaved(175)])
    entries = CheckpointStore(tmp_path / "run/checkpoints").catalog()
    assert [(entry.step, entry.eval_score is None) for entry in entries] == [(150, False), (175, True)]
    assert (tmp_path / "run/checkpoints/best").readlink() == Path("step_000000150")


def test_evaluation_that_is_cut_off_takes_no_training_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_power(*_: object, **__: object) -> None:
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr("atari_dqn.train.training_evaluations.Evaluations.play", no_power)
        with pytest.raises(PowerCut):
            run(tmp_path / "run", *RARELY_EVALUATED, "training.total_frames=280")
    assert CheckpointStore(tmp_path / "run/checkpoints").latest().name == "step_000000070"
    resume(tmp_path / "run")
    assert len(notices(tmp_path / "run", "evaluation")) == 1


def test_run_that_ended_before_its_first_checkpoint_says_that_it_begins_anew(tmp_path: Path) -> None:
    cut(tmp_path / "run", 50, *RARELY_EVALUATED, "training.total_frames=280")
    resume(tmp_path / "run")
    (reported,) = notices(tmp_path / "run", "resumed")
    assert reported["message"] == "the run ended before it saved a checkpoint, so it starts again on cpu"


def test_frames_come_due_once_at_each_multiple() -> None:
    cadence = Cadence(period_frames=100, period_seconds=0.0, now=lambda: 0.0)
    due = []
    for frames in range(0, 401, 40):
        if cadence.is_due(frames):
            due.append(frames)
            cadence.mark(frames)
    assert due == [120, 200, 320, 400]


def test_seconds_come_due_after_the_last_mark() -> None:
    time = iter([0.0, 599.0, 600.0, 600.0, 1_199.0, 1_200.0])
    cadence = Cadence(period_frames=0, period_seconds=600.0, now=lambda: next(time))
    found = [cadence.is_due(1), cadence.is_due(2)]
    cadence.mark(2)
    assert [*found, cadence.is_due(3), cadence.is_due(4)] == [False, True, False, True]


def test_frames_passed_before_a_resume_are_not_due_again() -> None:
    cadence = Cadence(period_frames=100, period_seconds=0.0, now=lambda: 0.0)
    cadence.mark(250)
    assert [cadence.is_due(frames) for frames in (250, 299, 300)] == [False, False, True]


@pytest.mark.parametrize("track", ["A", "B", "C"])
def test_every_track_is_saved_each_ten_minutes_unless_a_spec_says_otherwise(track: str) -> None:
    assert load_track(track)["checkpoint.period_seconds"] == 600.0


def test_periods_of_zero_are_allowed() -> None:
    spec = tiny_spec("checkpoint.period_frames=0", "checkpoint.period_seconds=0")
    assert (spec.checkpoint.period_frames, spec.checkpoint.period_seconds) == (0, 0.0)
    assert KEYS["checkpoint.period_seconds"].kind is float


def test_command_resumes_a_run_killed_while_its_checkpoint_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    run(path, *FEW_STEPS)
    final = (path / "checkpoints/latest").resolve()
    final.rename(final.with_name(f".{final.name}.replaced.partial"))
    monkeypatch.setattr(sys, "argv", ["dqn", "resume", str(path), "--frames", "120", "--plain"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
