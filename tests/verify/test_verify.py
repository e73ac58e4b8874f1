import hashlib
import json
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import CPU, run

from atari_dqn.cli.verify import document, text, verify
from atari_dqn.errors import DamagedError, InterruptedRunError, UserError
from atari_dqn.files.atomic import json_document
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Row
from atari_dqn.train import launch
from atari_dqn.verify import proof, repetition
from atari_dqn.verify.differences import between, first_difference, from_own_rows, lost_rows
from atari_dqn.verify.proof import Verification, check_only, verify_run
from atari_dqn.verify.records import InexactResume, RecordedState, Records, records_of
from atari_dqn.verify.repetition import REPEATED, OnProgress, Repetition, repeat_from


def quiet(what: str, done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run with the checkpoints of frames 600 and 800."""
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path, "training.total_frames=800", "checkpoint.keep_last=2")
    return path


def tree(path: Path) -> dict[str, str]:
    return {
        str(entry.relative_to(path)): hashlib.sha256(entry.read_bytes()).hexdigest()
        for entry in path.rglob("*")
        if entry.is_file()
    }


class Reports:
    """Takes the place of the queue of another process."""

    def __init__(self, put: OnProgress) -> None:
        self.put = put


def repeat_here(
    path: Path, checkpoint: str | None, device_name: str, stops: Sequence[int], on_progress: OnProgress
) -> Repetition:
    """Repeat in this process, because a fresh one imports packages for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repetition, "_STEP_QUEUES", [Reports(on_progress)])
        return repeat_from(path, checkpoint, device_name, stops)


@pytest.fixture(scope="module")
def found(whole: Path) -> Verification:
    """The result of a verification, repeated in this process; slow tests repeat in fresh ones."""
    before = tree(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "repeat_in_fresh_process", repeat_here)
        result = verify_run(whole, checkpoint=None, frames=200, device=CPU, on_progress=quiet)
    assert tree(whole) == before, "nothing is written into the run directory"
    return result


def test_run_that_repeats_is_exact(found: Verification) -> None:
    assert (found.verdict, found.differences, found.caveats) == ("exact", (), ())


def test_run_is_played_on_from_the_newest_checkpoint_with_another_after_it(found: Verification) -> None:
    assert (found.checkpoint, found.from_frames, found.to_frames) == ("step_000000150", 600, 800)
    assert found.recorded == ("step_000000200",)
    assert sum(found.own_rows.values()) > 0


@pytest.mark.parametrize("rest", [b"20", b"\xff"])
def test_row_that_a_crash_of_the_machine_left_incomplete_is_no_difference(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    shutil.copytree(whole, tmp_path / "run", symlinks=True)
    with (tmp_path / "run" / "update_log.csv").open("ab") as file:
        file.write(rest)
    monkeypatch.setattr(proof, "repeat_in_fresh_process", repeat_here)
    found = verify_run(tmp_path / "run", checkpoint=None, frames=200, device=CPU, on_progress=quiet)
    assert (found.verdict, found.differences) == ("exact", ())


def repetition_of(**rows: list[str]) -> Repetition:
    return Repetition(states={}, rows=rows, updates=0, returns=(), seconds=0.0)


@pytest.mark.parametrize(
    ("own", "caveats"),
    [
        (["10,a"], ["update_log.csv of the run has 1 of 2 rows up to step 29"]),
        ([], ["update_log.csv of the run has 0 of 2 rows up to step 29"]),
        (["10,a", "20,b"], []),
        (["10,a", "20,b", "30,c"], []),
    ],
)
def test_rows_that_a_run_lost_are_a_caveat(own: list[str], caveats: list[str]) -> None:
    repeated = repetition_of(update_log=["10,a", "20,b", "30,c", "40,d"])
    found = lost_rows(repeated, {"update_log": own}, until=29)
    assert [caveat.partition(";")[0] for caveat in found] == caveats
    assert [*from_own_rows(repeated, {"update_log": own})] == []


def test_run_with_lost_rows_is_not_called_exact(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_another_row(*arguments: Any) -> Repetition:
        found = repeat_here(*arguments)
        return replace(found, rows={**found.rows, "train_log": [*found.rows["train_log"], "199,of the run"]})

    monkeypatch.setattr(proof, "repeat_in_fresh_process", with_another_row)
    found = verify_run(whole, checkpoint=None, frames=200, device=CPU, on_progress=quiet)
    assert found.verdict == "repeats"
    assert "rows up to step 199; the others are lost, and were not compared" in found.caveats[0]


def test_verdict_is_the_last_line_and_lines_are_short(found: Verification) -> None:
    lines = text(found).splitlines()
    assert lines[-1] == "exact: all of it is the same to the last bit"
    assert max(len(line) for line in lines[1:]) <= 80


def test_verification_is_plain_json(found: Verification) -> None:
    plain = json.loads(json_document(document(found)))
    assert (plain["verdict"], plain["from_frames"]) == ("exact", 600)


class Ends:
    """A view that sends SIGTERM at the first row of update_log."""

    def __init__(self) -> None:
        self.sent = False

    def handle(self, event: Event) -> None:
        if not self.sent and isinstance(event, Row) and event.table == "update_log":
            self.sent = True
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def one_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run of 400 frames with only its last checkpoint; that of step 50 was removed."""
    path = tmp_path_factory.mktemp("one") / "run"
    with pytest.raises(InterruptedRunError):
        run(path, "training.total_frames=400", "evaluation.full_period_frames=9999", views=[Ends()])
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=None)
    assert [step.name for step in (path / "checkpoints").glob("step_*")] == ["step_000000100"]
    return path


@pytest.mark.slow
def test_finished_run_that_keeps_one_checkpoint_is_exact(
    one_checkpoint: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "repeat_in_fresh_process", repeat_here)
    verify(one_checkpoint, json=True)
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert (found["verdict"], found["checkpoint"]) == ("exact", "beginning")
    assert (found["from_frames"], found["to_frames"]) == (0, 400)  # the run's length, not 10,000
    assert found["recorded"] == ["step_000000050", "step_000000100"]
    assert output.err.splitlines()[0] == "checking files: 0 %"
    assert {"repeating: 50 %", "repeating again: 100 %"} <= set(output.err.splitlines())


def records(states: tuple[int, ...], rows: tuple[int, ...] = (), inexact: tuple[int, ...] = ()) -> Records:
    recorded = tuple(RecordedState(step=step, digest="", checkpoint=None) for step in states)
    resumes = tuple(InexactResume(step=step, reason="") for step in inexact)
    return Records(states=recorded, rows=frozenset(rows), resumes=inexact, inexact=resumes, budget=900)


@pytest.mark.parametrize(("start", "end"), [(0, 100), (250, 300), (300, 400)])
def test_no_more_is_played_than_the_run_has(start: int, end: int) -> None:
    assert records((100, 300)).end(start, 100) == end


def test_nothing_is_compared_beyond_a_resume_that_was_inexact() -> None:
    assert records((100, 300), inexact=(50,)).end(0, 100) == 50
    assert records((100, 300), inexact=(50,)).end(50, 100) == 150


def test_states_of_checkpoints_that_were_removed_are_known(one_checkpoint: Path) -> None:
    states = records_of(RunDirectory.open(one_checkpoint)).states
    assert [(state.step, state.checkpoint is None) for state in states] == [(50, True), (100, False)]


def test_states_that_a_resume_from_an_earlier_step_has_taken_the_place_of_are_not_compared_with(
    one_checkpoint: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(one_checkpoint, path, symlinks=True)
    saved = {
        "kind": "checkpoint",
        "step": 80,
        "message": "saved step 80",
        "data": {"state_digest": "of before"},
    }
    with (path / "events.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(event)}\n" for event in (saved, {"kind": "resumed", "step": 50}))
    assert [state.step for state in records_of(RunDirectory(path)).states] == [50, 100]


def test_run_from_before_a_table_was_added_has_the_records_of_the_others(
    one_checkpoint: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(one_checkpoint, path, symlinks=True)
    (path / "memory_log.csv").unlink()
    assert records_of(RunDirectory(path)).rows == records_of(RunDirectory(one_checkpoint)).rows


@pytest.mark.parametrize("line", ["\udcff", "[" * 10_000, '{"kind": "checkpoint", "step": "x"}', '"inexact"'])
def test_event_that_is_damaged_tells_of_nothing(one_checkpoint: Path, tmp_path: Path, line: str) -> None:
    path = tmp_path / "run"
    shutil.copytree(one_checkpoint, path, symlinks=True)
    with (path / "events.jsonl").open("a", errors="surrogateescape") as file:
        file.write(f"{line}\n")
    found, whole = records_of(RunDirectory(path)), records_of(RunDirectory(one_checkpoint))
    assert [(state.step, state.digest) for state in found.states] == [
        (state.step, state.digest) for state in whole.states
    ]
    assert found.inexact == ()


@pytest.mark.slow
def test_run_with_nothing_recorded_after_its_last_checkpoint_is_not_called_exact(whole: Path) -> None:
    found = verify_run(whole, checkpoint="latest", frames=40, device=CPU, on_progress=quiet)
    assert found.verdict == "repeats"
    assert "recorded nothing" in found.caveats[0]
    assert f"`dqn verify {whole} --checkpoint beginning` compares" in found.caveats[0]


@pytest.mark.slow
def test_run_is_played_again_from_its_beginning(whole: Path) -> None:
    found = verify_run(whole, checkpoint="beginning", frames=800, device=CPU, on_progress=quiet)
    assert (found.verdict, found.from_frames) == ("exact", 0)
    assert found.recorded == ("step_000000150", "step_000000200")


@pytest.mark.slow
def test_row_that_playing_on_does_not_repeat_is_named(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(whole, path, symlinks=True)
    with (path / "train_log.csv").open("a") as file:
        file.write(
            "201,804,99,0,1.0,1,4,game_over,0.5\n"
        )  # a row after the last checkpoint, as of a killed run
    found = verify_run(path, checkpoint="latest", frames=400, device=CPU, on_progress=quiet)
    assert found.verdict == "differs"
    assert found.differences[0].startswith("train_log.csv, row 1 of the repeated part: 201,804,99")


def test_damaged_log_is_named_with_the_command_that_sets_it_aside(whole: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(whole, tmp_path / "run", symlinks=True))
    (copy / "train_log.csv").write_text("step\n")
    with pytest.raises(DamagedError, match=r"train_log.csv: has 5 bytes.*\n.*--set-aside-damaged-logs"):
        check_only(copy)


def test_run_that_another_process_holds_is_not_verified(whole: Path) -> None:
    with RunDirectory.open(whole).locked(), pytest.raises(UserError, match="is in use by another process"):
        verify_run(whole, checkpoint=None, frames=200, device=CPU, on_progress=quiet)


def test_first_difference_is_the_first_part_in_the_states_order() -> None:
    expected = {"clock.steps": "a", "policy.stream": "b", "learner.updates": "c"}
    assert first_difference(expected, expected) is None
    assert first_difference(expected, {**expected, "learner.updates": "x", "policy.stream": "y"}) == (
        "policy.stream"
    )
    assert first_difference(expected, {**expected, "more": "z"}) == "more"


def test_repetitions_whose_evaluations_differ_differ() -> None:
    first = repetition_of(**{table: [] for table in REPEATED})
    found = list(between(replace(first, returns=(1.0,)), replace(first, returns=(2.0,))))
    assert found == ["between the repetitions an evaluation returns (1.0,) and (2.0,)"]
