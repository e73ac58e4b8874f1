"""Read the progress of one run of a sweep from the ends of its files: a hundred microseconds a run."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import open_regular
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.tailing.growing_file import GrowingFile
from atari_dqn.telemetry.events import BEGINNINGS

_HEAD_BYTES, _TAIL_BYTES = 4_096, 4_096
_NEEDED_KINDS = ('"kind": "gate"', '"kind": "extended"', '"kind": "resumed"', '"kind": "started"')
"""Beginnings of the lines of events.jsonl that are parsed; notices of checkpoints are most of the others."""


class RunProgress:
    """The progress of a run that may not have begun. `refresh` reads only files that have changed."""

    def __init__(self, path: Path, total_frames: int) -> None:
        self._path, self._planned_frames = path, total_frames
        self._begin()

    def _begin(self) -> None:
        """Forget everything that was read."""
        run = RunDirectory(self._path)
        self.total_frames = self._planned_frames
        """The current budget in emulator frames."""
        self._throughput = _LastRow(self._path / "throughput_log.csv")
        self._evaluations = _LastRow(self._path / "eval_log.csv")
        self._updates = _LastRow(self._path / "update_log.csv")
        self._spec, self._summary, self._events_path = run.spec, run.summary, run.events
        self._events = GrowingFile(run.events)
        self._alerts: dict[str, str] = {}
        self.has_begun = self.has_finished = False
        self._finished: tuple[int, int] | None = None
        """Identity of the summary that was read last; a run that is extended has none, or another."""

    def refresh(self) -> None:
        """Read what has changed. Parts that are damaged or incomplete are left out."""
        if self.has_finished and file_stamp(self._summary) == self._finished:
            return
        if not self._path.is_dir():
            self._begin()  # its folder may have been removed
            return
        self.has_begun = True
        for table in (self._throughput, self._evaluations, self._updates):
            table.refresh()
        self._finished = file_stamp(self._summary)
        self.has_finished = self._finished is not None and file_stamp(self._spec) is not None
        try:
            lines = self._events.new_lines()
        except DamagedError:
            lines = []
        if lines is None:  # a resume has cut the log back
            self._alerts = {}
            lines = self._events.new_lines() or []
        for line in lines:
            if any(kind in line for kind in _NEEDED_KINDS):
                self._handle(line)

    @property
    def env_frames(self) -> int:
        """Emulator frames of the latest row."""
        rows = (self._updates.row, self._throughput.row)
        return max(int(_number(row, "env_frames", 0.0)) for row in rows)

    @property
    def frames_per_second(self) -> float:
        """Emulator frames per second of the latest period; NaN before the first."""
        return _number(self._throughput.row, "frames_per_second")

    @property
    def seconds_left(self) -> float:
        """Time to the budget at the latest speed, without evaluations; NaN if the speed is not known."""
        rate = self.frames_per_second
        return max(0, self.total_frames - self.env_frames) / rate if rate > 0 else math.nan

    @property
    def evaluation(self) -> Mapping[str, float]:
        """The numbers of the latest row of eval_log; empty before the first."""
        row = self._evaluations.row
        return {name: _number(row, name) for name in ("mean_return", "frame_caps") if name in row}

    @property
    def alerts(self) -> list[str]:
        """The failure gates that have warned or tripped, each with its state."""
        return [f"{gate} {state}" for gate, state in self._alerts.items()]

    def _handle(self, line: str) -> None:
        try:
            event = msgspec.json.decode(line, type=_Event)
        except (ValueError, RecursionError):
            return
        raised = event.data.get("total_frames")
        if type(raised) is int:
            self.total_frames = raised
        if event.kind in BEGINNINGS:
            self._alerts = {}  # gates that are not ok follow
        state = str(event.data.get("state", ""))
        if event.kind == "gate":
            self._alerts.pop(str(event.data.get("gate")), None)
            if state in ("warned", "tripped"):
                self._alerts[str(event.data.get("gate"))] = state


class _Event(msgspec.Struct):
    kind: str
    data: dict[str, Any] = {}


class _LastRow:
    """The last complete row of a table, as text by column."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self.row: Mapping[str, str] = {}

    def refresh(self) -> None:
        """Read the row again if the file has changed."""
        stamp = file_stamp(self._path)
        if stamp == self._stamp:
            return
        try:
            self.row, self._stamp = _last_row(self._path, 0 if stamp is None else stamp[1]), stamp
        except OSError:
            self.row, self._stamp = {}, None


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Return the time of the last change and the length of a file, None if it cannot be found."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a thousand files, each second
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _last_row(path: Path, length: int) -> dict[str, str]:
    with open_regular(path) as file:
        head = file.read(_HEAD_BYTES)
        file.seek(max(0, length - _TAIL_BYTES))
        tail = file.read(2 * _TAIL_BYTES)
    header, _, _ = head.partition(b"\n")
    *_, last, _ = [b"", *tail.split(b"\n")]
    names, cells = header.decode(errors="replace").split(","), last.decode(errors="replace").split(",")
    is_row = last != header and len(cells) == len(names)
    return dict(zip(names, cells, strict=True)) if is_row else {}


def _number(row: Mapping[str, str], name: str, default: float = math.nan) -> float:
    try:
        value = float(row[name])
    except (KeyError, ValueError):
        return default
    return value if math.isfinite(value) else default
