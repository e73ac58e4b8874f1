"""How a run stands: what it is, how far it is, whether it goes on, what it last scored."""

from __future__ import annotations

import fcntl
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from atari_dqn.files.atomic import open_regular
from atari_dqn.formatting import printable
from atari_dqn.run.tailing.boundary import Unreadable, attempt
from atari_dqn.run.tailing.events import RunEvents
from atari_dqn.run.tailing.identity import identity_of
from atari_dqn.telemetry.alerts import Alerts
from atari_dqn.telemetry.events import Event, GateChanged, Notice, Row

SILENT_SECONDS = 600.0
"""A run without a lock that has written nothing for so long is not called running."""
_ENDINGS = {"finished": "finished", "halted": "halted", "interrupted": "interrupted", "worker died": "halted"}
_BEGINNINGS = ("started", "resumed")


class RunStatus:
    """Follows a run and knows its latest of everything. `look` reads what is new."""

    def __init__(self, run: Path, *, now: Callable[[], float] = time.time) -> None:
        self.run, self._now = run, now
        self.identity = identity_of(run)
        self._begin()

    def look(self) -> None:
        """Take what the run has written since the last look. `DamagedError` where its files are damaged."""
        events = self._events.new()
        if events is None:
            self._begin()
            events = self._events.new() or []
        for event in events:
            self._take(event)

    @property
    def state(self) -> str:
        """`running`, `finished`, `halted`, `interrupted`, `stopped`, or `new` before the first event.

        A run that ended without an event is `stopped`: no process holds its lock. One without a lock that
        has written nothing for ten minutes is `silent`.
        """
        if self._ending:
            return self._ending
        if not self._told:
            return "new"
        held = _is_held(self.run / ".lock")
        if held is None:
            return "silent" if self.silent_seconds > SILENT_SECONDS else "running"
        return "running" if held else "stopped"

    @property
    def silent_seconds(self) -> float:
        """How long ago the run wrote something."""
        return max(0.0, self._now() - _last_written(self.run))

    @property
    def fault(self) -> str:
        """What was left out because no run writes such lines, in words; empty where nothing was."""
        count = self._events.unreadable_lines
        lines = f"{count} line{'s' * (count != 1)} left out"
        return f"{lines}: {self._events.first_unreadable}" if count else ""

    @property
    def env_frames(self) -> int:
        """How far the run is: rows come once a period, notices between them and at the end."""
        return max(int(self.latest.get("update_log", {}).get("env_frames", 0)), self._noticed_frames)

    @property
    def total_frames(self) -> int:
        """The budget, as it was last raised."""
        return self._raised_frames or self.identity.total_frames

    @property
    def share(self) -> float:
        """How far the run is, of 1."""
        return min(1.0, self.env_frames / max(1, self.total_frames))

    @property
    def frames_per_second(self) -> float:
        """Speed of the latest period; NaN before the first."""
        return float(self.latest.get("throughput_log", {}).get("frames_per_second", math.nan))

    @property
    def seconds_left(self) -> float:
        """Time to the budget at the latest speed; NaN where that is not known: the replay fills faster."""
        rate = self.frames_per_second
        learning = self.latest.get("update_log", {}).get("updates", 0) > 0
        return (self.total_frames - self.env_frames) / rate if rate > 0 and learning else math.nan

    @property
    def alarms(self) -> list[str]:
        """The gates that are not ok, each with its state."""
        return [f"{gate} {state}" for gate, state in self.gates.items() if state not in ("ok", "watching")]

    def _begin(self) -> None:
        self._events = RunEvents(self.run, latest=True)
        self._ending, self._told, self._raised_frames, self._noticed_frames = "", False, 0, 0
        self.latest: dict[str, Mapping[str, Any]] = {}
        """The last row of each table."""
        self.best_evaluation: Mapping[str, Any] = {}
        """The row of the full or final evaluation with the highest mean return; empty before the first."""
        self.gates: dict[str, str] = {}
        self.notices: list[Notice | GateChanged] = []
        """What happened once, and the gates' alarms with their ends."""
        self._alerts = Alerts()

    def _take(self, event: Event) -> None:
        self._told = True
        if isinstance(event, Row):
            self.latest[event.table] = event.values
            self._take_evaluation(event)
        elif isinstance(event, GateChanged):
            self.gates[event.gate] = event.state
            if self._alerts.update(event):
                self.notices.append(event)
        elif isinstance(event, Notice):
            self._take_notice(event)

    def _take_evaluation(self, row: Row) -> None:
        if row.table == "eval_log" and row.values["eval_type"] != "light":
            best = float(self.best_evaluation.get("mean_return", math.nan))
            if math.isnan(best) or float(row.values["mean_return"]) > best:
                self.best_evaluation = row.values

    def _take_notice(self, notice: Notice) -> None:
        self.notices.append(notice)
        self._noticed_frames = max(self._noticed_frames, notice.env_frames)
        if notice.kind in _BEGINNINGS:
            self._ending, self._noticed_frames = "", notice.env_frames
        self._ending = _ENDINGS.get(notice.kind, self._ending)
        raised = notice.data.get("total_frames")
        if notice.kind in ("extended", "resumed") and isinstance(raised, int):
            self._raised_frames = raised


def _is_held(lock: Path) -> bool | None:
    """Return whether a process holds a run's lock; None where there is no lock to look at."""
    try:
        with open_regular(lock) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


class FollowedRun:
    """A run that is followed whatever state its files are in; one that is mended is read anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._status: RunStatus | None = None

    def look(self) -> RunStatus | Unreadable:
        """Return the run's status with what it has written since the last look, or why there is none."""
        found = attempt(self._look)
        if isinstance(found, Unreadable):
            self._status = None
            return Unreadable(found.reason.replace(printable(f"{self.path}/"), ""))
        self._status = found
        return found

    def _look(self) -> RunStatus:
        status = self._status or RunStatus(self.path)
        status.look()
        return status


def _last_written(run: Path) -> float:
    times = []
    for name in ("update_log.csv", "train_log.csv", "events.jsonl", "eval_log.csv"):
        try:
            times.append((run / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=-math.inf)
