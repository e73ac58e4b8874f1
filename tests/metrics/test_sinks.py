import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.events import Event, GateChanged, Notice, Progress, Row
from atari_dqn.telemetry.writers import EventLog, Sinks, TableSink

NOTICE = Notice(kind="resume", step=1000, env_frames=4000, message="resumed from step 1000")

Kept = Callable[[Any], Any]


def row(table: str, value: float = 1.0) -> Row:
    return Row(table=table, values=dict.fromkeys(column_names(table), value))


def records(path: Path) -> list[Mapping[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Recorder:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False

    def handle(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed = True


def test_every_declared_table_exists_from_the_start(tmp_path: Path, kept: Kept) -> None:
    kept(TableSink(tmp_path))
    assert {path.stem for path in tmp_path.glob("*.csv")} == set(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_row_reaches_the_file_of_its_table(tmp_path: Path, table: str, kept: Kept) -> None:
    kept(TableSink(tmp_path)).handle(row(table, 2.5))
    assert (tmp_path / f"{table}.csv").read_text().splitlines()[1] == ",".join(["2.5"] * len(TABLES[table]))


def test_undeclared_table_is_an_error_naming_it(tmp_path: Path, kept: Kept) -> None:
    with pytest.raises(ValueError, match="undeclared table 'sleep_log'"):
        kept(TableSink(tmp_path)).handle(Row(table="sleep_log", values={}))


def test_rows_after_a_checkpoint_are_cut_so_that_none_is_doubled(tmp_path: Path, kept: Kept) -> None:
    sink = kept(TableSink(tmp_path))
    sink.handle(row("eval_log", 1.5))
    state = sink.state_dict()
    wanted = (tmp_path / "eval_log.csv").read_bytes()
    sink.handle(row("eval_log", 2.5))
    sink.close()
    resumed = kept(TableSink(tmp_path))
    resumed.load_state_dict(state)
    assert (tmp_path / "eval_log.csv").read_bytes() == wanted


def test_table_that_came_after_a_checkpoint_begins_with_the_resume(tmp_path: Path, kept: Kept) -> None:
    sink = kept(TableSink(tmp_path))
    earlier = {name: offset for name, offset in sink.state_dict().items() if name != "prediction_log"}
    header = (tmp_path / "prediction_log.csv").read_bytes()
    sink.handle(row("prediction_log", 1.5))
    sink.load_state_dict(earlier)
    assert (tmp_path / "prediction_log.csv").read_bytes() == header


def test_checkpoint_may_know_one_of_two_tables_that_came_later(
    tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atari_dqn.telemetry.writers.TABLES_ADDED", {"prediction_log", "replay_log"})
    sink = kept(TableSink(tmp_path))
    sink.handle(row("replay_log", 1.5))
    state, wanted = sink.state_dict(), (tmp_path / "replay_log.csv").read_bytes()
    del state["prediction_log"]
    sink.handle(row("replay_log", 2.5))
    sink.load_state_dict(state)
    assert (tmp_path / "replay_log.csv").read_bytes() == wanted


def test_state_of_other_tables_is_damaged(tmp_path: Path, kept: Kept) -> None:
    with pytest.raises(DamagedError, match="eval_log"):
        kept(TableSink(tmp_path)).load_state_dict({"train_log": 0})


def test_notice_is_one_json_line_with_a_utc_timestamp(tmp_path: Path, kept: Kept) -> None:
    path = tmp_path / "events.jsonl"
    kept(EventLog(path, now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))).handle(NOTICE)
    assert records(path) == [
        {
            "timestamp": "2026-01-02T03:04:05.000+00:00",
            "kind": "resume",
            "step": 1000,
            "env_frames": 4000,
            "message": "resumed from step 1000",
            "data": {},
        }
    ]


def test_event_log_is_continued_across_resumes(tmp_path: Path, kept: Kept) -> None:
    for _ in range(2):
        log = kept(EventLog(tmp_path / "events.jsonl"))
        log.handle(NOTICE)
        log.close()
    assert len(records(tmp_path / "events.jsonl")) == 2


def test_notice_after_a_torn_line_begins_a_line_of_its_own(tmp_path: Path, kept: Kept) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"kind": "gat')
    kept(EventLog(path)).handle(NOTICE)
    assert json.loads(path.read_text().splitlines()[1])["kind"] == "resume"


def test_notice_about_nan_is_still_json(tmp_path: Path, kept: Kept) -> None:
    data = {"loss": float("nan"), "norms": [np.float32(np.inf), 2], "where": Path("a")}
    kept(EventLog(tmp_path / "e.jsonl")).handle(
        Notice(kind="halt", step=1, env_frames=4, message="halt", data=data)
    )
    assert records(tmp_path / "e.jsonl")[0]["data"] == {"loss": "nan", "norms": ["inf", 2], "where": "a"}


def test_notice_with_a_path_that_is_not_utf8_is_logged(tmp_path: Path, kept: Kept) -> None:
    message = "cannot write run_\udcff"
    kept(EventLog(tmp_path / "e.jsonl")).handle(Notice(kind="halt", step=1, env_frames=4, message=message))
    assert records(tmp_path / "e.jsonl")[0]["message"] == "cannot write run_?"


def test_rows_and_progress_are_no_notices(tmp_path: Path, kept: Kept) -> None:
    log = kept(EventLog(tmp_path / "events.jsonl"))
    log.handle(row("eval_log"))
    log.handle(Progress(activity="evaluation", done=1, total=2))
    assert (tmp_path / "events.jsonl").read_bytes() == b""


def test_full_disk_while_logging_a_notice_is_one_clear_message(tmp_path: Path, kept: Kept) -> None:
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    log = kept(EventLog(tmp_path / "events.jsonl"))
    with pytest.raises(UserError, match=r"events\.jsonl: no space left on device"):
        log.handle(NOTICE)


@pytest.mark.fault("D16")
def test_every_sink_gets_every_event() -> None:
    sinks = [Recorder(), Recorder()]
    events: list[Event] = [row("train_log"), NOTICE, Progress(activity="evaluation", done=0, total=3)]
    for event in events:
        Sinks(sinks).handle(event)
    assert [sink.events for sink in sinks] == [events, events]


def test_failure_of_a_sink_reaches_the_other_sinks() -> None:
    class Full(Recorder):
        def handle(self, event: Event) -> None:
            raise UserError("no space left on device")

    after = Recorder()
    Sinks([Full(), after]).handle_failure(NOTICE)
    assert after.events == [NOTICE]


def test_a_sink_that_fails_to_close_leaves_no_other_open() -> None:
    class Failing(Recorder):
        def close(self) -> None:
            raise RuntimeError("stuck")

    before, after = Recorder(), Recorder()
    with pytest.raises(RuntimeError, match="stuck"):
        Sinks([before, Failing(), after]).close()
    assert (before.closed, after.closed) == (True, True)


@pytest.mark.fault("D03")
def test_change_of_a_gate_is_a_line_of_the_event_log(tmp_path: Path, kept: Kept) -> None:
    change = GateChanged(
        gate="loss", state="tripped", step=1000, env_frames=4000, message="it is NaN",
        value=float("nan"), threshold=float("inf"),
    )  # fmt: skip
    kept(EventLog(tmp_path / "events.jsonl")).handle(change)
    (found,) = records(tmp_path / "events.jsonl")
    assert {key: found[key] for key in ("kind", "step", "env_frames", "message", "data")} == {
        "kind": "gate", "step": 1000, "env_frames": 4000, "message": "it is NaN",
        "data": {"gate": "loss", "state": "tripped", "value": "nan", "threshold": "inf"},
    }  # fmt: skip
