"""Rows that a tracking service has are not sent to it again."""

from pathlib import Path

from atari_dqn.telemetry.events import Row
from atari_dqn.telemetry.sinks.sent_rows import SentRows


def row(table: str, step: int) -> Row:
    return Row(table=table, values={"step": step, "env_frames": 4 * step})


def test_rows_written_again_after_a_resume_are_not_new(tmp_path: Path) -> None:
    sent = SentRows(tmp_path / "sent.json")
    sent.begin("a1")
    assert [sent.is_new(row("train_log", step)) for step in (10, 20, 30)] == [True, True, True]
    sent.save()
    resumed = SentRows(tmp_path / "sent.json")
    assert resumed.run_id == "a1"
    assert [resumed.is_new(row("train_log", step)) for step in (20, 30, 40)] == [False, False, True]


def test_each_table_has_its_own_last_row(tmp_path: Path) -> None:
    sent = SentRows(tmp_path / "sent.json")
    sent.is_new(row("train_log", 30))
    sent.save()
    assert SentRows(tmp_path / "sent.json").is_new(row("eval_log", 20))


def test_rows_of_one_step_are_all_new(tmp_path: Path) -> None:
    sent = SentRows(tmp_path / "sent.json")
    assert [sent.is_new(row("train_log", 10)) for _ in range(2)] == [True, True]


def test_a_kill_loses_no_more_than_the_rows_after_the_last_update_row(tmp_path: Path) -> None:
    sent = SentRows(tmp_path / "sent.json")
    sent.is_new(row("train_log", 10))
    sent.is_new(row("update_log", 10))
    sent.is_new(row("train_log", 20))
    after_the_kill = SentRows(tmp_path / "sent.json")
    assert [after_the_kill.is_new(row("train_log", step)) for step in (10, 20)] == [False, True]
