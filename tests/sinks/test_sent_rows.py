"""Rows that a tracking service has are not sent to it again."""

import json
from pathlib import Path

import pytest

from atari_dqn.errors import DamagedError
from atari_dqn.telemetry.events import Notice, Row
from atari_dqn.telemetry.sinks.sent_rows import SentRows
from atari_dqn.telemetry.sinks.service_sink import ServiceSink


def row(table: str, step: int) -> Row:
    return Row(table=table, values={"step": step, "env_frames": 4 * step})


def news(sent: SentRows, table: str, *steps: int) -> list[bool]:
    """Send the rows that are new; return for each whether it was."""
    found = []
    for step in steps:
        found.append(sent.is_new(row(table, step)))
        sent.mark_sent(row(table, step))
    return found


def test_rows_written_again_after_a_resume_are_not_new(tmp_path: Path) -> None:
    sent = SentRows(tmp_path / "sent.json")
    sent.begin("a1")
    assert news(sent, "train_log", 10, 20, 30) == [True, True, True]
    sent.save()
    resumed = SentRows(tmp_path / "sent.json")
    assert resumed.run_id == "a1"
    assert news(resumed, "train_log", 20, 30, 40) == [False, False, True]


def test_each_table_has_its_own_last_row(tmp_path: Path) -> None:
    news(SentRows(tmp_path / "sent.json"), "train_log", 30)
    assert news(SentRows(tmp_path / "sent.json"), "eval_log", 20) == [True]


def test_rows_of_one_step_are_all_new(tmp_path: Path) -> None:
    assert news(SentRows(tmp_path / "sent.json"), "train_log", 10, 10) == [True, True]


def test_only_those_rows_of_the_last_step_that_were_sent_are_known_after_a_kill(tmp_path: Path) -> None:
    news(SentRows(tmp_path / "sent.json"), "train_log", 10, 20, 20)
    after_the_kill = SentRows(tmp_path / "sent.json")
    assert news(after_the_kill, "train_log", 10, 20, 20, 20) == [False, False, False, True]


@pytest.mark.parametrize("last", ["train_log", "update_log"])
def test_a_kill_loses_no_row(tmp_path: Path, last: str) -> None:
    sent = SentRows(tmp_path / "sent.json")
    news(sent, "update_log", 10)
    news(sent, last, 20)
    assert news(SentRows(tmp_path / "sent.json"), last, 20, 30) == [False, True]


@pytest.mark.parametrize("rest", [b'["train_log", 4', b'["train_log", 40, 1', b"\0\0\0\n", b"\xff\xff"])
def test_lines_that_a_power_failure_left_incomplete_are_of_rows_that_were_not_sent(
    tmp_path: Path, rest: bytes
) -> None:
    news(SentRows(tmp_path / "sent.json"), "train_log", 10, 30)
    with (tmp_path / "sent.jsonl").open("ab") as file:
        file.write(rest)
    assert news(SentRows(tmp_path / "sent.json"), "train_log", 30, 40) == [False, True]
    assert news(SentRows(tmp_path / "sent.json"), "train_log", 40, 50) == [False, True]


def test_the_rows_of_a_file_of_an_earlier_version_were_sent(tmp_path: Path) -> None:
    (tmp_path / "wandb.json").write_text('{"run_id": "a1", "last_steps": {"train_log": 20}}')
    sent = SentRows(tmp_path / "wandb.json")
    assert (sent.run_id, news(sent, "train_log", 10, 20, 20, 30)) == ("a1", [False, False, False, True])


def test_without_the_file_every_row_is_new_again(tmp_path: Path) -> None:
    news(SentRows(tmp_path / "wandb.json"), "train_log", 10, 20)
    (tmp_path / "wandb.json").unlink()
    assert news(SentRows(tmp_path / "wandb.json"), "train_log", 10, 20) == [True, True]


def test_a_saved_file_is_whole_by_itself(tmp_path: Path) -> None:
    sent = SentRows(tmp_path / "wandb.json")
    sent.begin("a1")
    news(sent, "train_log", 10, 20, 20)
    sent.save()
    assert [path.name for path in tmp_path.iterdir()] == ["wandb.json"]
    assert json.loads((tmp_path / "wandb.json").read_text()) == {
        "run_id": "a1", "last_steps": {"train_log": 20}, "last_numbers": {"train_log": 2}
    }  # fmt: skip


class Service(ServiceSink):
    """Keeps the frames of the rows that it gets; the network is down at some frames."""

    def __init__(self, path: Path, *, down: tuple[int, ...] = ()) -> None:
        super().__init__(SentRows(path))
        self.frames: list[int] = []
        self.down = down

    def _send_scalars(self, scalars: dict[str, float], env_frames: int) -> None:
        if env_frames in self.down:
            raise ConnectionError
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


def test_row_that_could_not_be_sent_is_sent_by_a_resume(tmp_path: Path) -> None:
    service = Service(tmp_path / "sent.json", down=(80,))
    service.handle(row("train_log", 10))
    with pytest.raises(ConnectionError):
        service.handle(row("train_log", 20))
    service.close()
    again = (notice("resumed", 5), row("train_log", 10), row("train_log", 20))
    assert frames_sent(tmp_path / "sent.json", *again) == [80]


def test_rows_that_were_sent_before_a_kill_are_not_sent_again(tmp_path: Path) -> None:
    rows = [row("update_log", 10), row("train_log", 12), row("replay_log", 13)]
    killed = Service(tmp_path / "sent.json")
    for each in rows:
        killed.handle(each)
    again = (notice("resumed", 6), *rows, row("train_log", 14))
    assert frames_sent(tmp_path / "sent.json", *again) == [56]


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


class Histograms(Service):
    """Keeps the frames of the evaluations whose games it gets."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.evaluated: list[int] = []

    def _send_notice(self, notice: Notice) -> None:
        self.evaluated += [notice.env_frames for _ in self._new_games(notice)]


def evaluation(step: int) -> tuple[Row, Notice]:
    games = {"returns": [1.0, 3.0]}
    played = Notice(kind="evaluation", step=step, env_frames=4 * step, message="", data=games)
    return row("eval_log", step), played


@pytest.mark.parametrize(("kind", "frames"), [("resumed", [80]), ("inexact", [40, 80])])
def test_games_of_an_evaluation_are_sent_again_only_by_an_inexact_resume(
    tmp_path: Path, kind: str, frames: list[int]
) -> None:
    frames_sent(tmp_path / "sent.json", *evaluation(10))
    service = Histograms(tmp_path / "sent.json")
    for event in (notice("resumed", 5), notice(kind, 5), *evaluation(10), *evaluation(20)):
        service.handle(event)
    assert service.evaluated == frames
