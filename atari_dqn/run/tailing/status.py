"""Track the status of a run: its progress, whether it is running, its latest rows and alerts."""

from __future__ import annotations

import fcntl
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from atari_dqn.files.atomic import open_regular
from atari_dqn.formatting import plural, printable
from atari_dqn.run.archive.archive import is_imported
from atari_dqn.run.lock import LOCK
from atari_dqn.run.tailing.identity import identity_of
from atari_dqn.run.tailing.isolation import Unreadable, attempt
from atari_dqn.run.tailing.run_events import LATEST_BYTES, RunEvents
from atari_dqn.telemetry.alerts import Alerts
from atari_dqn.telemetry.events import ACTORS, BEGINNINGS, ENDINGS, Event, GateChanged, Notice, Row

IMPORTED = "imported"
"""State of an archive that `dqn import` unpacked; it is not trained here."""
SILENT_SECONDS = 600.0
"""A run without a lock file is `silent` after this time without writing."""


class RunStatus:
    """Tails a run and holds its latest rows, notices and gate states. `refresh` reads new events."""

    def __init__(self, run: Path, *, now: Callable[[], float] = time.time) -> None:
        self.run, self._now = run, now
        self.identity = identity_of(run)
        self._is_imported = is_imported(run)
        self._begin()

    def refresh(self) -> None:
        """Process the events since the last call; raise `DamagedError` if the files are damaged."""
        events = self._events.new()
        if events is None:
            self._begin()
            events = self._events.new() or []
        for event in events:
            self._handle(event)

    @property
    def state(self) -> str:
        """`running`, `stopped`, an end of `ENDINGS`, `imported`, or `new` before the first event.

        A run that ended without an event is `stopped`: no process holds its lock. A run without a lock file
        that has written nothing for ten minutes is `silent`.
        """
        if self._is_imported:
            return IMPORTED
        if self._ending:
            return self._ending
        if not self._has_events:
            return "new"
        held = _is_held(self.run / LOCK)
        if held is None:
            return "silent" if self.silent_seconds > SILENT_SECONDS else "running"
        return "running" if held else "stopped"

    @property
    def last_written(self) -> float:
        """When the run last wrote, by the clock of its disk; −∞ if it has no files."""
        return last_written(self.run)

    @property
    def silent_seconds(self) -> float:
        """Time since the run last wrote."""
        return max(0.0, self._now() - self.last_written)

    @property
    def fault(self) -> str:
        """Description of the invalid lines that were left out; empty without any.

        Those in a part of a long table that is not read are not counted.
        """
        count = self._events.unreadable_lines
        lines = f"{plural(count, 'line')} left out"
        return f"{lines}: {self._events.first_unreadable}" if count else ""

    @property
    def env_frames(self) -> int:
        """Emulator frames of the latest row of update_log or notice."""
        return max(int(self.latest.get("update_log", {}).get("env_frames", 0)), self._noticed_frames)

    @property
    def total_frames(self) -> int:
        """The current budget in emulator frames."""
        return self._raised_frames or self.identity.total_frames

    @property
    def frames_per_second(self) -> float:
        """Emulator frames per second of the latest period; NaN before the first."""
        return float(self.latest.get("throughput_log", {}).get("frames_per_second", math.nan))

    @property
    def seconds_left(self) -> float:
        """Time to the budget at the latest speed; NaN before the first update, as prefilling is faster."""
        rate = self.frames_per_second
        learning = self.latest.get("update_log", {}).get("updates", 0) > 0
        return (self.total_frames - self.env_frames) / rate if rate > 0 and learning else math.nan

    @property
    def alerts(self) -> list[str]:
        """The gates that have warned or tripped, each with its state."""
        return [f"{gate} {state}" for gate, state in self.gates.items() if state not in ("ok", "watching")]

    def _begin(self) -> None:
        self._events = RunEvents(self.run, last_bytes=LATEST_BYTES)
        self._ending, self._has_events, self._raised_frames, self._noticed_frames = "", False, 0, 0
        self.latest: dict[str, Mapping[str, Any]] = {}
        """The last row of each table."""
        self.best_evaluation: Mapping[str, Any] = {}
        """The row of the full or final evaluation with the highest mean return; empty before the first."""
        self.gates: dict[str, str] = {}
        self.notices: list[Notice | GateChanged] = []
        """Notices, except the reports of actors, and the beginnings and ends of alerts."""
        self._alerts = Alerts()

    def _handle(self, event: Event) -> None:
        self._has_events = True
        if isinstance(event, Row):
            self.latest[event.table] = event.values
            self._handle_evaluation(event)
        elif isinstance(event, GateChanged):
            self.gates[event.gate] = event.state
            if self._alerts.update(event):
                self.notices.append(event)
        elif isinstance(event, Notice):
            self._handle_notice(event)

    def _handle_evaluation(self, row: Row) -> None:
        if row.table == "eval_log" and row.values["eval_type"] != "light":
            best = float(self.best_evaluation.get("mean_return", math.nan))
            if math.isnan(best) or float(row.values["mean_return"]) > best:
                self.best_evaluation = row.values

    def _handle_notice(self, notice: Notice) -> None:
        if notice.kind != ACTORS:
            self.notices.append(notice)
        self._noticed_frames = max(self._noticed_frames, notice.env_frames)
        if notice.kind in BEGINNINGS:
            self._ending, self._noticed_frames = "", notice.env_frames
            self.gates, self._alerts = {}, Alerts()  # gates that are not ok follow a beginning
        self._ending = ENDINGS.get(notice.kind, self._ending)
        raised = notice.data.get("total_frames")
        if notice.kind in ("extended", "resumed") and isinstance(raised, int):
            self._raised_frames = raised


def _is_held(lock: Path) -> bool | None:
    """Return whether a process holds the lock of a run; None without a lock file."""
    try:
        with open_regular(lock) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


class TailedRun:
    """Tails a run whose files may be damaged; after an error it is read from the beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._status: RunStatus | None = None

    def refresh(self) -> RunStatus | Unreadable:
        """Return the current status of the run, or the reason why it cannot be read."""
        found = attempt(self._refresh)
        if isinstance(found, Unreadable):
            self._status = None
            return Unreadable(found.reason.replace(printable(f"{self.path}/"), ""))
        self._status = found
        return found

    def _refresh(self) -> RunStatus:
        status = self._status or RunStatus(self.path)
        status.refresh()
        return status


def last_written(run: Path) -> float:
    """Return the time stamp of the last write to a table or the events of a run; −∞ without any."""
    times = []
    for name in ("update_log.csv", "train_log.csv", "events.jsonl", "eval_log.csv"):
        try:
            times.append((run / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=-math.inf)
