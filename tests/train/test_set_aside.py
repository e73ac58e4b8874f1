"""A damaged log does not end a run with an intact checkpoint: it is set aside, and a new one is started."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import CPU

from atari_dqn.compare.load import load_runs
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.telemetry.columns import column_names
from atari_dqn.train import launch
from atari_dqn.verify.checks import check_run

LOGS = ["update_log.csv", "eval_log.csv", "events.jsonl"]


@pytest.fixture(scope="module")
def whole(tiny_run: Callable[..., Path]) -> Path:
    """A complete run whose best checkpoint, of step 150, is not its newest, of step 200."""
    return tiny_run("training.total_frames=800")


@pytest.fixture(scope="module", params=LOGS)
def gone_on(request: pytest.FixtureRequest, whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was resumed to 1,000 frames without one of its logs."""
    path = tmp_path_factory.mktemp("gone_on") / "run"
    shutil.copytree(whole, path, symlinks=True)
    (path / request.param).write_bytes(b"")
    resume(path, set_aside_logs=True)
    return path


@pytest.fixture(scope="module")
def extended(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that was resumed to 1,000 frames with all its logs."""
    path = tmp_path_factory.mktemp("extended") / "run"
    shutil.copytree(whole, path, symlinks=True)
    resume(path)
    return path


def resume(path: Path, *, total_frames: int | None = 1_000, set_aside_logs: bool = False) -> dict:
    return launch.resume(
        RunDirectory.open(path),
        device=CPU,
        views=[],
        total_frames=total_frames,
        set_aside_logs=set_aside_logs,
    )


def notices(path: Path, kind: str) -> list[str]:
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [line["message"] for line in lines if line["kind"] == kind]


@pytest.mark.parametrize("name", LOGS)
def test_emptied_log_is_refused_with_the_command_that_sets_it_aside(copied: Path, name: str) -> None:
    (copied / name).write_bytes(b"")
    with pytest.raises(DamagedError) as refusal:
        resume(copied)
    assert f"{name}: has 0 bytes of" in str(refusal.value)
    assert f"`dqn resume {copied} --set-aside-damaged-logs` moves it to set_aside/" in str(refusal.value)


def test_run_goes_on_to_the_same_state_without_a_log(gone_on: Path, extended: Path) -> None:
    digests = [
        json.loads((path / "summary.json").read_text())["state_digest"] for path in (gone_on, extended)
    ]
    assert digests[0] == digests[1]


def test_damaged_log_is_kept_and_the_new_one_begins_where_the_run_goes_on(copied: Path) -> None:
    log = copied / "update_log.csv"
    damaged = b"x" + log.read_bytes()[1:]
    log.write_bytes(damaged)
    resume(copied, set_aside_logs=True)
    assert (copied / "set_aside/update_log.csv").read_bytes() == damaged
    rows = log.read_text().splitlines()
    assert rows[0] == ",".join(column_names("update_log"))
    assert [int(row.partition(",")[0]) for row in rows[1:]] == [250]


def test_event_log_tells_what_was_set_aside(copied: Path) -> None:
    (copied / "update_log.csv").write_bytes(b"")
    resume(copied, set_aside_logs=True)
    assert notices(copied, "set aside") == [
        "update_log.csv was damaged; it was moved to set_aside/update_log.csv, and a new one is started"
    ]


def test_log_that_is_gone_is_begun_anew(copied: Path) -> None:
    (copied / "update_log.csv").unlink()
    resume(copied, set_aside_logs=True)
    assert notices(copied, "set aside") == [
        "update_log.csv was damaged; it no longer existed, and a new one is started"
    ]


def test_finished_run_gets_a_new_log_without_a_larger_budget(copied: Path, whole: Path) -> None:
    (copied / "update_log.csv").write_bytes(b"")
    resume(copied, total_frames=None, set_aside_logs=True)
    summaries = [json.loads((path / "summary.json").read_text()) for path in (copied, whole)]
    assert summaries[0]["state_digest"] == summaries[1]["state_digest"]
    assert check_run(RunDirectory.open(copied)).checkpoints


def test_remedy_of_a_damaged_log_and_a_damaged_checkpoint_takes_the_older_checkpoint(copied: Path) -> None:
    log = copied / "update_log.csv"
    log.write_bytes(b"x" + log.read_bytes()[1:])
    (copied / "checkpoints/step_000000200/state.json").write_text("{}")
    options = "--checkpoint step_000000150 --set-aside-damaged-logs --discard-later"
    for set_aside_logs in (False, True):
        with pytest.raises(DamagedError) as refusal:
            resume(copied, set_aside_logs=set_aside_logs)
        assert f"`dqn resume {copied} {options}` goes back" in str(refusal.value)
    launch.resume(
        RunDirectory.open(copied), device=CPU, views=[], total_frames=None, checkpoint="step_000000150",
        discard_later=True, set_aside_logs=True,
    )  # fmt: skip
    assert json.loads((copied / "summary.json").read_text())["env_frames"] == 800


@pytest.mark.slow
def test_run_needs_the_option_once(copied: Path) -> None:
    (copied / "update_log.csv").write_bytes(b"")
    resume(copied, set_aside_logs=True)
    assert resume(copied, total_frames=1_200)["env_frames"] == 1_200


@pytest.mark.slow
def test_earlier_checkpoint_can_be_gone_back_to_after_a_log_was_set_aside(copied: Path) -> None:
    (copied / "update_log.csv").write_bytes(b"")
    resume(copied, set_aside_logs=True)
    assert CheckpointStore(copied / "checkpoints").catalog()[0].step == 150
    launch.resume(
        RunDirectory.open(copied), device=CPU, views=[], total_frames=None, checkpoint="step_000000150",
        discard_later=True,
    )  # fmt: skip
    assert json.loads((copied / "summary.json").read_text())["env_frames"] == 800


def test_option_that_finds_nothing_to_set_aside_is_refused(copied: Path) -> None:
    with pytest.raises(UserError, match="no log is damaged; resume without --set-aside-damaged-logs"):
        resume(copied, set_aside_logs=True)


def test_damaged_spec_is_not_set_aside(copied: Path) -> None:
    (copied / "update_log.csv").write_bytes(b"")
    (copied / "provenance.json").write_bytes((copied / "provenance.json").read_bytes() + b"\n")
    with pytest.raises(DamagedError, match=r"provenance\.json: was changed after the run began"):
        resume(copied, set_aside_logs=True)


def test_verify_finds_a_run_whole_that_went_on_without_a_log(gone_on: Path) -> None:
    assert "step_000000150" in check_run(RunDirectory.open(gone_on)).checkpoints


def test_compare_reads_a_run_that_went_on_without_a_log(gone_on: Path) -> None:
    assert load_runs([gone_on])[0].evaluations[-1].env_frames == 1_000


def test_run_that_went_on_without_a_log_is_followed_as_finished(gone_on: Path) -> None:
    status = RunStatus(gone_on)
    status.refresh()
    assert (status.state, status.total_frames, status.env_frames) == ("finished", 1_000, 1_000)
