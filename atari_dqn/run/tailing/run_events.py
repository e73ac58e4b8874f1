"""Read the events of a run from its tables and its event log as they grow, with all text printable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import msgspec

from atari_dqn.errors import DamagedError
from atari_dqn.formatting import printable
from atari_dqn.run.tailing.growing_file import GrowingFile
from atari_dqn.run.tailing.highest import highest
from atari_dqn.run.tailing.isolation import decoder_message
from atari_dqn.telemetry.columns import FORMER_NAMES, TABLES, column_names
from atari_dqn.telemetry.events import ACTORS, GATES, Event, GateChanged, GateState, Notice, Row, Value

LATEST_BYTES = 16_384
"""The end of a table that has its latest row."""
RECENT_BYTES = 131_072
"""The end of a table that has more periods than a view shows."""
_ACTORS = f'"kind": "{ACTORS}"'.encode()
_WORDS = {column.name for table in TABLES.values() for column in table if column.is_text}
_LONGEST_WORD = 100
_COUNTS = ("step", "env_frames", "episode_number")
_COUNT = re.compile(r"\d{1,15}", re.ASCII)
_NUMBER = re.compile(r"-?(\d{1,24}(\.\d{1,24})?(e[+-]?\d{1,3})?|inf|nan)", re.ASCII)

_Count = Annotated[int, msgspec.Meta(ge=0, lt=10**15)]


class _Record(msgspec.Struct):
    """A line of events.jsonl."""

    kind: str
    message: str
    step: _Count
    env_frames: _Count
    data: dict[str, Any] | None = None


class _GateData(msgspec.Struct):
    """The data of a state change of a gate. NaN and infinities are strings."""

    state: GateState
    value: float | str
    threshold: float | str


class RunEvents:
    """Reads the events that a run has written since the last call, in the order of steps.

    Invalid rows and lines, which a crash of the machine leaves, are left out and counted, and the first one
    is described. Raise `DamagedError` for a table with an invalid header and for a file that is not regular.
    Of the reports of actors each call returns the latest alone. With `last_bytes`, tables that are much
    longer are read from near their end, except eval_log; with `best_episode`, the row of the highest return
    in train_log comes before them.
    """

    def __init__(self, run: Path, *, last_bytes: int | None = None, best_episode: bool = False) -> None:
        self._tables = {
            name: GrowingFile(run / f"{name}.csv", last_bytes=None if name == "eval_log" else last_bytes)
            for name in TABLES
        }
        self._best_is_due = best_episode
        self._headers: dict[str, list[str]] = {}
        self._log = GrowingFile(run / "events.jsonl", superseded=_ACTORS)
        self.unreadable_lines = 0
        self.first_unreadable = ""
        """Description of the first line that was left out."""

    def new(self) -> list[Event] | None:
        """Return the new events; None if a resume has truncated files, so that all must be read again."""
        log_lines = self._log.new_lines()
        lines = {name: file.new_lines() for name, file in self._tables.items()}
        if log_lines is None or any(new is None for new in lines.values()):
            return None
        rows = [row for name, new in lines.items() for row in self._rows(name, new or [])]
        if self._best_is_due and "train_log" in self._headers:
            self._best_is_due = False
            file, returns = self._tables["train_log"], self._headers["train_log"].index("episode_return")
            rows += self._rows("train_log", highest(file.path, file.skipped, returns))
        notices = list(self._notices(log_lines))
        found: list[tuple[int, Event]] = [*((_step(row), row) for row in rows), *_with_steps(notices)]
        return [event for _, event in sorted(found, key=itemgetter(0))]

    def _rows(self, table: str, lines: list[str]) -> Iterator[Row]:
        for line in lines:
            cells = line.split(",")  # no cell holds a comma or a quote
            if table not in self._headers:
                self._headers[table] = _checked_header(cells, self._tables[table].path)
                continue
            try:
                yield Row(table=table, values=_row(self._headers[table], cells))
            except ValueError as error:
                self._leave_out(f"{table}.csv: {error}")

    def _notices(self, lines: list[str]) -> Iterator[Event]:
        for line in lines:
            try:
                yield _event(line)
            except RecursionError:
                self._leave_out("events.jsonl: a line is nested too deeply")
            except ValueError as error:
                self._leave_out(f"events.jsonl: {decoder_message(error)}")

    def _leave_out(self, reason: str) -> None:
        self.unreadable_lines += 1
        self.first_unreadable = self.first_unreadable or printable(reason)


def _checked_header(cells: list[str], path: Path) -> list[str]:
    names = {FORMER_NAMES.get(name, name) for name in cells}
    missing = [name for name in column_names(path.stem) if name not in names]
    if missing:
        raise DamagedError(f"{path}: the header is damaged: no {', '.join(missing)}")
    return [FORMER_NAMES.get(name, name) for name in cells]


def _row(header: list[str], cells: list[str]) -> dict[str, Value]:
    """Parse the cells of a row; raise `ValueError` if they are invalid."""
    if len(cells) != len(header):
        raise ValueError(f"a row has {len(cells)} cells, expected {len(header)}")
    return {name: _value(name, cell) for name, cell in zip(header, cells, strict=True)}


def _value(name: str, cell: str) -> Value:
    """Parse a cell as a count, a number (NaN if empty) or a word."""
    if name in _WORDS:
        if len(cell) > _LONGEST_WORD:
            raise ValueError(f"{name} has {len(cell):,} letters, expected a word")
        return printable(cell)
    if name in _COUNTS and not _COUNT.fullmatch(cell):
        raise ValueError(f"{name} is {_shortened(cell)}, expected a whole number")
    if not cell:
        return float("nan")
    if not _NUMBER.fullmatch(cell):
        raise ValueError(f"{name} is {_shortened(cell)}, expected a number")
    return int(cell) if _COUNT.fullmatch(cell) else float(cell)


def _shortened(cell: str, most: int = 20) -> str:
    return repr(cell if len(cell) <= most else f"{cell[:most]}…")


def _event(line: str) -> Event:
    """Parse a line of the event log; raise `ValueError` if it is invalid."""
    record = msgspec.json.decode(line, type=_Record)
    data, message = record.data or {}, printable(record.message)
    if record.kind == "gate" and str(data.get("gate")) in GATES:
        change = msgspec.convert(data, _GateData)
        return GateChanged(
            gate=data["gate"],
            state=change.state,
            message=message,
            value=float(change.value),
            threshold=float(change.threshold),
            step=record.step,
            env_frames=record.env_frames,
        )
    return Notice(
        kind=printable(record.kind),
        message=message,
        data=data,
        step=record.step,
        env_frames=record.env_frames,
    )


def _with_steps(notices: list[Event]) -> Iterator[tuple[int, Event]]:
    """Pair each notice with a step for sorting, so that notices stay in the order of their file.

    After a resume from an earlier step, the rows after that step are those of the resumed run. Notices from
    before the resume are sorted before these rows.
    """
    steps = accumulate(map(_step, reversed(notices)), min)
    return zip(reversed(list(steps)), notices, strict=True)


def _step(event: Event) -> int:
    return int(event.values["step"]) if isinstance(event, Row) else getattr(event, "step", 0)
