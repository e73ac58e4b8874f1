"""Long runs are read from near the end of their files, without the reports that later ones replace."""

import json
from pathlib import Path

from atari_dqn.run.tailing.growing_file import GrowingFile
from atari_dqn.run.tailing.highest import highest
from atari_dqn.run.tailing.run_events import RunEvents
from atari_dqn.telemetry.columns import column_names
from atari_dqn.telemetry.events import Event, Notice, Row


def episodes(path: Path, returns: list[float]) -> None:
    """Write train_log.csv with an episode of each return."""
    names = column_names("train_log")
    rows = [
        dict.fromkeys(names, "0")
        | {
            "step": f"{at}",
            "env_frames": f"{4 * at}",
            "episode_number": f"{at}",
            "episode_return": f"{value}",
        }
        for at, value in enumerate(returns, start=1)
    ]
    lines = [",".join(names), *(",".join(row[name] for name in names) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def notice(kind: str, step: int) -> str:
    record = {"timestamp": "2026-01-01", "kind": kind, "step": step, "env_frames": 4 * step, "message": ""}
    return json.dumps(record) + "\n"


def new(events: RunEvents) -> list[Event]:
    found = events.new()
    assert found is not None
    return found


def test_a_long_table_is_read_from_its_end_after_the_episode_with_the_highest_return(tmp_path: Path) -> None:
    episodes(tmp_path / "train_log.csv", [1.0, 9.0, *[2.0] * 400, 3.0])
    found = new(RunEvents(tmp_path, last_bytes=500, best_episode=True))
    returns = [event.values["episode_return"] for event in found if isinstance(event, Row)]
    assert returns[0] == 9.0
    assert returns[-1] == 3.0
    assert 3 < len(returns) < 40


def test_an_episode_of_a_short_table_is_read_once(tmp_path: Path) -> None:
    episodes(tmp_path / "train_log.csv", [1.0, 9.0, 2.0])
    found = new(RunEvents(tmp_path, last_bytes=100_000, best_episode=True))
    assert [event.values["episode_return"] for event in found if isinstance(event, Row)] == [1.0, 9.0, 2.0]


def test_the_highest_number_is_found_among_damaged_lines(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("a,b\n1,5\n2\n3,nan\n4,x\n5,7\n6,6\n7,99\n")
    assert highest(path, range(4, len(path.read_bytes()) - 5), 1) == ["5,7"]


def test_of_the_reports_of_actors_the_last_alone_is_read_in_its_place(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    kinds = ["started", "actors", "note", "actors", "resumed"]
    log.write_text("".join(notice(kind, step) for step, kind in enumerate(kinds)))
    events = RunEvents(tmp_path)
    read = [(event.kind, event.step) for event in new(events) if isinstance(event, Notice)]
    assert read == [("started", 0), ("note", 2), ("actors", 3), ("resumed", 4)]
    with log.open("a") as file:
        file.write(notice("actors", 5))
    assert [event.kind for event in new(events) if isinstance(event, Notice)] == ["actors"]


def test_a_line_across_two_blocks_is_read_whole(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("atari_dqn.run.tailing.growing_file._BLOCK_BYTES", 4)
    (tmp_path / "log").write_text("first\nsecond\nth")
    file = GrowingFile(tmp_path / "log")
    assert file.new_lines() == ["first", "second"]
    with (tmp_path / "log").open("a") as end:
        end.write("ird\n")
    assert file.new_lines() == ["third"]


def test_a_row_with_a_damaged_episode_number_is_left_out(tmp_path: Path) -> None:
    episodes(tmp_path / "train_log.csv", [1.0, 2.0])
    text = (tmp_path / "train_log.csv").read_text().splitlines()
    number = column_names("train_log").index("episode_number")
    for damaged in ("", "inf", "nan", "1e30"):
        cells = text[-1].split(",")
        cells[number] = damaged
        text.append(",".join(cells))
    (tmp_path / "train_log.csv").write_text("\n".join(text) + "\n")
    events = RunEvents(tmp_path)
    assert len(new(events)) == 2
    assert events.unreadable_lines == 4
