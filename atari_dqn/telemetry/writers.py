"""Write events to the files of a run: CSV tables and the event log; and combine several sinks into one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import AppendFile, plain
from atari_dqn.telemetry.columns import TABLES, TABLES_ADDED, column_names, former_column_names
from atari_dqn.telemetry.csv_table import CsvTable
from atari_dqn.telemetry.events import Event, GateChanged, Notice, Row, Sink
from atari_dqn.types import StateDict


class TableSink:
    """Appends every row to the CSV file of its table. All declared tables are created at the start."""

    def __init__(self, directory: Path) -> None:
        self._tables = {
            name: CsvTable(directory / f"{name}.csv", column_names(name), former=former_column_names(name))
            for name in TABLES
        }

    def handle(self, event: Event) -> None:
        """Append a row, and ignore other events. Raise `ValueError` for an undeclared table."""
        if not isinstance(event, Row):
            return
        if event.table not in self._tables:
            raise ValueError(f"undeclared table {event.table!r} (declared: {', '.join(self._tables)})")
        self._tables[event.table].append(event.values)

    def close(self) -> None:
        """Close the files."""
        for table in self._tables.values():
            table.close()

    def state_dict(self) -> StateDict:
        """Flush each file to disk, and return its length in bytes by table."""
        for table in self._tables.values():
            table.sync()
        return {name: table.offset() for name, table in self._tables.items()}

    def load_state_dict(self, state: StateDict) -> None:
        """Truncate each file to its length in a state, so that a resumed run writes no row twice.

        A table that the state does not contain begins with the resume.
        """
        if not self._tables.keys() - TABLES_ADDED <= state.keys() <= self._tables.keys():
            raise DamagedError(
                f"the checkpoint has the tables {sorted(state)}, expected {sorted(self._tables)}"
            )
        for name, table in self._tables.items():
            if name in state:
                table.truncate(state[name])
            else:
                table.restart()

    def restart(self) -> None:
        """Remove every row."""
        for table in self._tables.values():
            table.restart()


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class EventLog:
    """Appends notices and state changes of gates to a file of JSON lines, which resumes continue."""

    def __init__(self, path: Path, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._file = AppendFile(path)
        if self._ends_inside_a_line():  # a crash of the machine left the last one incomplete
            self._file.append(b"\n")

    def handle(self, event: Event) -> None:
        """Append a notice or a state change of a gate, and ignore other events."""
        if isinstance(event, GateChanged):
            event = _notice_of(event)
        if isinstance(event, Notice):
            line = json.dumps(self._record(event), ensure_ascii=False, allow_nan=False)
            self._file.append(line.encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _record(self, notice: Notice) -> dict[str, Any]:
        record = {
            "timestamp": self._now().isoformat(timespec="milliseconds"),
            "kind": notice.kind,
            "step": notice.step,
            "env_frames": notice.env_frames,
            "message": notice.message,
            "data": notice.data,
        }
        return {name: plain(value) for name, value in record.items()}

    def _ends_inside_a_line(self) -> bool:
        length = self._file.length()
        return length > 0 and self._file.read(length - 1, 1) != b"\n"


def _notice_of(change: GateChanged) -> Notice:
    return Notice(
        kind="gate",
        step=change.step,
        env_frames=change.env_frames,
        message=change.message,
        data={
            "gate": change.gate,
            "state": change.state,
            "value": change.value,
            "threshold": change.threshold,
        },
    )


class Sinks:
    """Combines sinks into one: each gets every event, in order."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)

    def handle(self, event: Event) -> None:
        """Pass the event to every sink."""
        for sink in self._sinks:
            sink.handle(event)

    def handle_failure(self, notice: Notice) -> None:
        """Pass the notice of an error that ends the run to every sink, except those that fail themselves.

        The error may be that of a sink, such as a table on a full disk.
        """
        for sink in self._sinks:
            with suppress(Exception):
                sink.handle(notice)

    def close(self) -> None:
        """Close every sink, the last one first, even if one of them fails."""
        with ExitStack() as stack:
            for sink in self._sinks:
                stack.callback(sink.close)
