"""Rows that a tracking service has are not sent to it again."""

from pathlib import Path

import pytest

from atari_dqn.errors import DamagedError
from atari_dqn.telemetry.events import Notice, Row
from atari_dqn.telemetry.sinks.sent_rows import SentRows
from atari_dqn.telemetry.sinks.service_sink import ServiceSink


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


class Service(ServiceSink):
    """Keeps the frames of the rows that it gets."""

    def __init__(self, path: Path) -> None:
        super().__init__(SentRows(path))
        self.frames: list[int] = []

    def _send_scalars(self, scalars: dict[str, float], env_frames: int) -> None:
        self.frames.append(env_frames)

    def _send_notice(self, notice: Notice) -> None:
        pass

    def _end(self, *, finished: bool) -> None:
        pass


def notice(kind: str, step: int) -> Notice:
    return Notice(kind=kind, step=step, env_frames=4 * step, message="")


def frames_sent(path: Path, *events: Row | Notice) -> list[int]:
    """Return the frames of the rows that a service gets of the events of one process."""
    service = Service(path)
    for event in events:
        service.handle(event)
    service.close()
    return service.frames


def test_rows_after_an_inexact_resume_are_sent_although_their_steps_were(tmp_path: Path) -> None:
    path = tmp_path / "sent.json"
    frames_sent(path, *(row("train_log", step) for step in (10, 20, 30)))
    after = (notice("inexact", 15), row("train_log", 22), row("train_log", 29))
    assert frames_sent(path, notice("resumed", 15), *after) == [88, 116]


def test_late_row_after_an_inexact_resume_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "sent.json"
    frames_sent(path, row("eval_log", 20))
    assert frames_sent(path, notice("inexact", 30), row("eval_log", 18)) == [72]


def test_rows_of_an_inexact_resume_are_not_sent_again_by_an_exact_one(tmp_path: Path) -> None:
    path = tmp_path / "sent.json"
    frames_sent(path, *(row("train_log", step) for step in (10, 20, 30)))
    frames_sent(path, notice("inexact", 15), row("train_log", 22))
    again = (notice("resumed", 15), row("train_log", 22), row("train_log", 29))
    assert frames_sent(path, *again) == [116]


def test_rows_before_an_inexact_resume_stay_sent(tmp_path: Path) -> None:
    path = tmp_path / "sent.json"
    frames_sent(path, *(row("train_log", step) for step in (10, 20, 30)))
    frames_sent(path, notice("inexact", 15))
    assert frames_sent(path, row("train_log", 10), row("train_log", 20)) == [80]


@pytest.mark.parametrize("text", ["", "[1]", '{"run_id": 7}', '{"last_steps": {"a": "b"}}', '{"run_id": "a'])
def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "wandb.json").write_text(text)
    with pytest.raises(DamagedError, match=r"wandb\.json: .*; without the file, every row is sent"):
        SentRows(tmp_path / "wandb.json")
