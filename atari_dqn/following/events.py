"""A run's events, read back from its tables and its log as they grow."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from atari_dqn.following.lines import GrowingFile
from atari_dqn.metrics.columns import TABLES
from atari_dqn.metrics.events import GATES, Event, GateChanged, Notice, Row, Value

_LATEST_BYTES = 16_384
_NUMBERS = {"nan", "inf", "-inf"}


class RunEvents:
    """Reads what a run has written since the last look, in the order of steps.

    Rows and lines that are not what a run writes are left out, and counted. With `latest` long tables are
    begun near their end, but for the evaluations.
    """

    def __init__(self, run: Path, *, latest: bool = False) -> None:
        self._tables = {
            name: GrowingFile(
                run / f"{name}.csv", last_bytes=_LATEST_BYTES if latest and name != "eval_log" else None
            )
            for name in TABLES
        }
        self._headers: dict[str, list[str]] = {}
        self._log = GrowingFile(run / "events.jsonl")
        self.unreadable_lines = 0

    def new(self) -> list[Event] | None:
        """Return the new events; None where a resume has cut files back, and all is to be read again."""
        told = self._log.new_lines()
        lines = {name: file.new_lines() for name, file in self._tables.items()}
        if told is None or any(new is None for new in lines.values()):
            return None
        rows = [row for name, new in lines.items() for row in self._rows(name, new or [])]
        found: list[Event] = [*rows, *self._notices(told)]
        return sorted(found, key=_step)

    def _rows(self, table: str, lines: list[str]) -> Iterator[Row]:
        for cells in csv.reader(lines):
            header = self._headers.setdefault(table, cells)
            if cells is header:
                continue
            values = {name: _value(cell) for name, cell in zip(header, cells, strict=False)}
            if len(cells) == len(header) and _is_number(values.get("step")):
                yield Row(table=table, values=values)
            else:
                self.unreadable_lines += 1

    def _notices(self, lines: list[str]) -> Iterator[Event]:
        for line in lines:
            try:
                record = json.loads(line)
                yield _event(record)
            except (ValueError, KeyError, TypeError, RecursionError):
                self.unreadable_lines += 1


def _event(record: Mapping[str, Any]) -> Event:
    place = {"step": int(record["step"]), "env_frames": int(record["env_frames"])}
    message, data = str(record["message"]), dict(record.get("data") or {})
    if record["kind"] == "gate" and data.get("gate") in GATES:
        value, threshold = float(data["value"]), float(data["threshold"])
        return GateChanged(
            gate=data["gate"], state=data["state"], message=message, value=value, threshold=threshold, **place
        )
    return Notice(kind=str(record["kind"]), message=message, data=data, **place)


def _step(event: Event) -> int:
    return int(event.values["step"]) if isinstance(event, Row) else getattr(event, "step", 0)


def _is_number(value: Value | None) -> bool:
    return isinstance(value, int)


def _value(cell: str) -> Value:
    """Return a cell as what was written: a count, a number (nothing is NaN), or a word."""
    if not cell:
        return float("nan")
    if not cell[-1].isdigit() and cell not in _NUMBERS:
        return cell
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
