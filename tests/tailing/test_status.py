"""The status read from the files of a run equals that of the run itself."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from atari_dqn.errors import DamagedError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.tailing.identity import identity_of
from atari_dqn.run.tailing.run_events import RunEvents
from atari_dqn.run.tailing.shown_progress import shown_progress
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.events import GateChanged, Row


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy", symlinks=True))


def looked(path: Path, **options) -> RunStatus:
    status = RunStatus(path, **options)
    status.refresh()
    return status


def without_ending(path: Path) -> Path:
    lines = (path / "events.jsonl").read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["kind"] != "finished"]
    (path / "events.jsonl").write_text("\n".join(kept) + "\n")
    return path


def test_every_row_comes_back_as_it_was_written(finished: Path) -> None:
    events = RunEvents(finished).new()
    for table in TABLES:
        rows = [event.values for event in events if isinstance(event, Row) and event.table == table]
        written = pl.read_csv((finished / f"{table}.csv").read_bytes())
        assert [row["env_frames"] for row in rows] == written["env_frames"].to_list()
    episodes = [e.values["episode_return"] for e in events if isinstance(e, Row) and e.table == "train_log"]
    assert episodes == pl.read_csv((finished / "train_log.csv").read_bytes())["episode_return"].to_list()


def test_events_come_in_the_order_of_steps(finished: Path) -> None:
    steps = [
        event.values["step"] if isinstance(event, Row) else event.step for event in RunEvents(finished).new()
    ]
    assert steps == sorted(steps)


def test_a_gate_comes_back_as_a_gate(finished: Path) -> None:
    gates = [event for event in RunEvents(finished).new() if isinstance(event, GateChanged)]
    assert {(gate.gate, gate.state) for gate in gates} == {("actions", "watching"), ("actions", "ok")}


def test_what_a_gate_only_watched_is_not_among_the_notices(finished: Path) -> None:
    assert not any(isinstance(notice, GateChanged) for notice in looked(finished).notices)


def test_a_gates_alert_and_its_end_are_among_the_notices(copied: Path) -> None:
    with (copied / "events.jsonl").open("a") as file:
        for state in ("watching", "warned", "ok"):
            data = {"gate": "disk", "state": state, "value": 1.0, "threshold": 2.0}
            record = {"kind": "gate", "step": 300, "env_frames": 1200, "message": "", "data": data}
            file.write(json.dumps(record) + "\n")
    changes = [notice for notice in looked(copied).notices if isinstance(notice, GateChanged)]
    assert [(change.gate, change.state) for change in changes] == [("disk", "warned"), ("disk", "ok")]


def test_a_finished_run_is_finished_with_its_numbers(finished: Path) -> None:
    status = looked(finished)
    scores = pl.read_csv((finished / "eval_log.csv").read_bytes())
    best = scores.filter(pl.col("eval_type") != "light")["mean_return"].max()
    assert (status.state, status.env_frames, shown_progress(status).share) == ("finished", 1200, 1.0)
    assert status.best_evaluation["mean_return"] == best
    assert (status.identity.game, status.identity.seed, status.identity.track) == ("catch", 1, "A")


def test_a_run_whose_lock_is_held_runs_however_long_it_has_been_silent(copied: Path) -> None:
    without_ending(copied)
    with RunDirectory(copied).locked():
        assert looked(copied, now=lambda: 1e12).state == "running"


def test_a_run_that_no_process_holds_and_that_did_not_end_is_stopped(copied: Path) -> None:
    assert looked(without_ending(copied)).state == "stopped"


def test_without_a_lock_a_run_that_wrote_just_now_runs_and_one_long_silent_is_silent(copied: Path) -> None:
    without_ending(copied)
    (copied / ".lock").unlink()
    written = (copied / "events.jsonl").stat().st_mtime
    assert looked(copied, now=lambda: written + 30).state == "running"
    assert looked(copied, now=lambda: written + 3600).state == "silent"


def test_a_table_cut_in_the_middle_of_a_line_shows_the_rows_before(copied: Path) -> None:
    table = copied / "update_log.csv"
    table.write_bytes(table.read_bytes()[:-10])
    status = looked(copied)
    assert status.latest["update_log"]["env_frames"] == 1000
    assert status.state == "finished"


def test_a_run_is_as_far_as_its_last_notice_where_that_comes_after_its_last_row(copied: Path) -> None:
    table = copied / "update_log.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    assert looked(copied).env_frames == 1200


def test_a_run_that_was_resumed_is_where_it_was_resumed(copied: Path) -> None:
    table = copied / "update_log.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:3]))
    resumed = {"kind": "resumed", "step": 150, "env_frames": 600, "message": "", "data": {}}
    with (copied / "events.jsonl").open("a") as file:
        file.write(json.dumps(resumed) + "\n")
    assert looked(copied).env_frames == 600


def test_a_run_cut_back_by_a_resume_is_read_anew(copied: Path) -> None:
    status = looked(copied)
    table = copied / "update_log.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:3]))
    status.refresh()
    assert status.latest["update_log"]["env_frames"] == 400


def test_a_run_that_was_resumed_from_before_it_halted_is_not_halted(copied: Path) -> None:
    halted = {"kind": "halted", "step": 290, "env_frames": 1160, "message": "", "data": {}}
    resumed = {"kind": "resumed", "step": 150, "env_frames": 600, "message": "", "data": {}}
    with (without_ending(copied) / "events.jsonl").open("a") as file:
        file.write(f"{json.dumps(halted)}\n{json.dumps(resumed)}\n")
    assert looked(copied).state == "stopped"


def test_lines_that_no_run_writes_are_counted_and_left_out(copied: Path) -> None:
    with (copied / "events.jsonl").open("a") as file:
        file.write('{"kind": 1}\nnot json\n')
    with (copied / "update_log.csv").open("a") as file:
        file.write("only,three,cells\n")
    events = RunEvents(copied)
    events.new()
    assert events.unreadable_lines == 3


def test_a_raised_budget_counts(copied: Path) -> None:
    record = {
        "kind": "extended",
        "step": 300,
        "env_frames": 1200,
        "message": "",
        "data": {"total_frames": 2400},
    }
    with (copied / "events.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    assert shown_progress(looked(copied)).share == 0.5


def test_a_folder_without_a_spec_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match=r"spec\.toml: missing"):
        identity_of(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the document: object missing required field `game`"),
        ("track = ", "is not TOML"),
        ('track = "A"', "the document: object missing required field `game`"),
        ("\x00", "is not TOML"),
    ],
)
def test_a_damaged_spec_is_an_error_that_names_it(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "spec.toml").write_text(text)
    with pytest.raises(DamagedError, match=rf"spec\.toml: {problem}"):
        identity_of(tmp_path)


def test_gates_of_before_a_resume_are_no_alerts_after_it(copied: Path) -> None:
    gate = {"gate": "loss", "state": "tripped", "value": 1.0, "threshold": 2.0}
    with (copied / "events.jsonl").open("a") as file:
        for kind, data in (("gate", gate), ("resumed", {})):
            record = {"kind": kind, "step": 300, "env_frames": 1200, "message": "", "data": data}
            file.write(json.dumps(record) + "\n")
    assert looked(copied).alerts == []
