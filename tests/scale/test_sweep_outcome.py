"""The error of a sweep that is not complete: an interrupt, failures, or what could not be trained."""

import signal
from pathlib import Path

import pytest

from atari_dqn.cli.sweep_outcome import conclude
from atari_dqn.errors import HaltedError, InterruptedRunError, UserError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.sweep.failures import Failure, write_failure_record
from atari_dqn.run.sweep.status import SweepStatus
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import open_sweep
from atari_dqn.scale.scheduler import SweepResult

FIRST, SECOND = "catch_smoke_catch_seed1", "catch_smoke_catch_seed2"
HALTED = Failure(kind="halted", reason="halted by the gate loss", exit_code=3)


@pytest.fixture
def status(tmp_path: Path) -> SweepStatus:
    """The status of a sweep of which no run has begun, and the first is recorded as halted."""
    path = tmp_path / "mine.toml"
    path.write_text('spec = "catch_smoke"\nseeds = 2\n')
    hardware = find_hardware(tmp_path, with_gpus=False)
    folder = open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=hardware).folder
    write_failure_record(folder.failure(FIRST), HALTED)
    status = SweepStatus(folder.path)
    status.refresh()
    return status


def notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def test_an_interrupted_sweep_says_what_is_left_and_where_the_reasons_of_failures_are(status: SweepStatus):
    result = SweepResult(finished=(), failed={FIRST: HALTED}, unfinished=(SECOND,))
    with pytest.raises(InterruptedRunError, match="SIGINT") as caught:
        conclude(status, result, signal.SIGINT, "--on ray")
    path = status.folder.path
    assert notes(caught.value) == [
        f"1 run left, 0 of them with a checkpoint; `dqn sweep {path} --on ray` continues",
        f"1 run failed: `dqn sweep {path} --status` shows the reasons",
    ]


def test_an_interrupted_sweep_counts_the_runs_that_go_on_from_a_checkpoint(status: SweepStatus):
    (status.folder.run(SECOND).checkpoints / "step_000000004").mkdir(parents=True)
    result = SweepResult(finished=(), failed={}, unfinished=(FIRST, SECOND))
    with pytest.raises(InterruptedRunError) as caught:
        conclude(status, result, signal.SIGINT)
    assert notes(caught.value)[0].startswith("2 runs left, 1 of them with a checkpoint; ")


def test_an_interrupted_sweep_counts_no_checkpoint_of_a_run_that_may_not_be_read(
    status: SweepStatus, monkeypatch: pytest.MonkeyPatch
):
    run = status.folder.run(SECOND)
    (run.checkpoints / "step_000000004").mkdir(parents=True)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != run.path)
    with pytest.raises(InterruptedRunError) as caught:
        conclude(status, SweepResult(finished=(), failed={}, unfinished=(SECOND,)), signal.SIGINT)
    assert notes(caught.value)[0].startswith("1 run left, 0 of them with a checkpoint; ")


def test_an_error_is_raised_also_if_a_signal_came_after_it(status: SweepStatus):
    result = SweepResult(finished=(), failed={}, unfinished=(SECOND,), error=UserError("no space left"))
    with pytest.raises(UserError, match="no space left"):
        conclude(status, result, signal.SIGINT)


def test_failures_are_raised_with_the_reason_why_the_others_cannot_be_compared(status: SweepStatus):
    result = SweepResult(finished=(SECOND,), failed={FIRST: HALTED}, unfinished=())
    with pytest.raises(HaltedError, match=f"1 run failed:\n{FIRST} halted by the gate loss") as caught:
        conclude(status, result, None)
    (note,) = notes(caught.value)
    assert note.startswith("what has finished cannot be compared: run directory")


def test_runs_that_cannot_be_compared_are_an_error_of_a_complete_sweep(status: SweepStatus):
    with pytest.raises(UserError, match=f"{SECOND}': not found"):
        conclude(status, SweepResult(finished=(SECOND,), failed={}, unfinished=()), None)


def test_the_first_method_is_the_reference_though_its_first_run_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, compared = tmp_path / "mine.toml", []

    def compare(paths: list[Path], **_: object) -> None:
        compared.extend(path.name for path in paths)
        raise UserError("compared")

    monkeypatch.setattr("atari_dqn.compare.comparison.compare_readable", compare)
    path.write_text('spec = "catch_smoke"\nseeds = 2\n[methods.b]\n[methods.a.toggles]\nn_step = 2\n')
    hardware = find_hardware(tmp_path, with_gpus=False)
    folder = open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=hardware).folder
    finished = ("a_catch_seed1", "b_catch_seed2", "a_catch_seed2")
    with pytest.raises(UserError, match="compared"):
        conclude(SweepStatus(folder.path), SweepResult(finished=finished, failed={}, unfinished=()), None)
    assert compared == ["b_catch_seed2", "a_catch_seed1", "a_catch_seed2"]
