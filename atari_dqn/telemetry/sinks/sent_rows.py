"""Record which rows a tracking service has, because a resumed run writes rows again that were sent before.

An exact resume writes the same rows again, which are not sent twice. An inexact one writes others in their
place; these are sent, and the service keeps the earlier ones too.

The state is a JSON file, saved durably from time to time, and a file of JSON lines with the rows that were
sent since then. A line is appended without waiting for the disk: a killed process loses none, and after a
power failure some of these rows are sent again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import exists, write_json_atomically
from atari_dqn.files.documents import MOST_INT, checked, read_json, read_run_file
from atari_dqn.files.failures import writing
from atari_dqn.telemetry.events import Row

Place = tuple[int, int]
"""The place of a row in its table: its agent step, and its number, from 1, among the rows of this step.

Rows are counted from 1 in each process: no checkpoint lies between two rows of one table and step.
"""
_BEFORE_EVERY_ROW: Place = (-1, 0)


class _State(msgspec.Struct):
    """The contents of the JSON file."""

    run_id: str | None = None
    last_steps: dict[str, int] = msgspec.field(default_factory=dict)
    last_numbers: dict[str, int] = msgspec.field(default_factory=dict)
    """The numbers of the rows at these steps; without one, as in files of earlier versions, every row of the
    step was sent."""

    def places(self) -> dict[str, Place]:
        """Return the last place of each table."""
        return {
            table: (step, self.last_numbers.get(table, MOST_INT)) for table, step in self.last_steps.items()
        }


class SentRows:
    """The id of the service's run, and the place of the last row of each table that was sent."""

    def __init__(self, path: Path) -> None:
        self._path, self._recent = path, path.with_suffix(".jsonl")
        known = exists(path)
        state = _read(path) if known else _State()
        self.run_id = state.run_id
        self._last = state.places()
        if known and exists(self._recent):
            for table, place in _read_recent(self._recent):
                self._last[table] = max(place, self._last.get(table, _BEFORE_EVERY_ROW))
        self._before = dict(self._last)
        self._reached: dict[str, Place] = {}
        """The last place of each table in this process, whether or not its row was sent before."""
        self.save()  # without the lines: new ones would follow an incomplete one, or those of a removed file

    def begin(self, run_id: str) -> None:
        """Save the id of the service's run."""
        self.run_id = run_id
        self.save()

    def is_new(self, row: Row) -> bool:
        """Return whether a row was not sent before this resume."""
        return self._place(row) > self._before.get(row.table, _BEFORE_EVERY_ROW)

    def mark_sent(self, row: Row) -> None:
        """Record that the service has a row; called for every row in turn, also for one that is not new."""
        place = self._place(row)
        self._reached[row.table] = place
        if place > self._last.get(row.table, _BEFORE_EVERY_ROW):
            self._last[row.table] = place
            self._append(row.table, place)
        if row.table == "update_log":
            self.save()

    def rewind(self, step: int) -> None:
        """Count every row from here on as new: the run goes on differently from a step, an inexact resume."""
        self.forget_after(step)
        self._before = {}

    def forget_after(self, step: int) -> None:
        """Count the rows after a step as not sent."""
        self._last = {table: min(last, (step, MOST_INT)) for table, last in self._last.items()}
        self._before = dict(self._last)

    def save(self) -> None:
        """Write the JSON file, and remove the lines that it then contains."""
        document = {
            "run_id": self.run_id,
            "last_steps": {table: step for table, (step, _) in self._last.items()},
            "last_numbers": {table: number for table, (_, number) in self._last.items()},
        }
        write_json_atomically(self._path, document)
        with writing(self._recent):
            self._recent.unlink(missing_ok=True)

    def _place(self, row: Row) -> Place:
        step = int(row.values["step"])
        reached_step, number = self._reached.get(row.table, _BEFORE_EVERY_ROW)
        return step, number + 1 if step == reached_step else 1

    def _append(self, table: str, place: Place) -> None:
        with writing(self._recent), self._recent.open("a") as file:
            file.write(json.dumps([table, *place]) + "\n")


def _read(path: Path) -> _State:
    try:
        return checked(path, read_json(path), _State)
    except DamagedError as error:
        remedy = "without the file, every row is sent again, to a new run of W&B or MLflow"
        raise DamagedError(f"{error}; {remedy}") from error


def _read_recent(path: Path) -> Iterator[tuple[str, Place]]:
    """Yield the table and the place of each line, up to one that a power failure left incomplete."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        for line in read_run_file(path).splitlines():
            table, step, number = msgspec.json.decode(line, type=tuple[str, int, int])
            yield table, (step, number)
