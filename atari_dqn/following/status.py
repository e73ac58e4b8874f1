"""How a run stands: what it is, how far it is, whether it goes on, what it last scored."""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atari_dqn.errors import DamagedError
from atari_dqn.files import reading
from atari_dqn.following.events import RunEvents
from atari_dqn.metrics.alarms import Alarms
from atari_dqn.metrics.events import Event, GateChanged, Notice, Row

SILENT_SECONDS = 600.0
"""A run that has written nothing for so long is not called running. Evaluations take minutes."""
_ENDINGS = {"finished": "finished", "halted": "halted", "interrupted": "interrupted", "worker died": "halted"}
_BEGINNINGS = ("started", "resumed")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a run is, from its spec."""

    game: str
    seed: int
    track: str
    total_frames: int


class RunStatus:
    """Follows a run and knows its latest of everything. `look` reads what is new."""

    def __init__(self, run: Path, *, now: Callable[[], float] = time.time) -> None:
        self.run, self._now = run, now
        self.identity = identity_of(run)
        self._begin()

    def look(self) -> None:
        """Take what the run has written since the last look."""
        events = self._events.new()
        if events is None:
            self._begin()
            events = self._events.new() or []
        for event in events:
            self._take(event)

    @property
    def state(self) -> str:
        """`running`, `finished`, `halted`, `interrupted`, `silent`, or `new` before the first event."""
        if self._ending:
            return self._ending
        if not self._told:
            return "new"
        return "silent" if self.silent_seconds > SILENT_SECONDS else "running"

    @property
    def silent_seconds(self) -> float:
        """How long ago the run wrote something."""
        return max(0.0, self._now() - _last_written(self.run))

    @property
    def env_frames(self) -> int:
        """How far the run is."""
        return int(self.latest.get("update_log", {}).get("env_frames", 0))

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
        """Time to the budget at the latest speed; NaN where that is not known."""
        rate = self.frames_per_second
        return (self.total_frames - self.env_frames) / rate if rate > 0 else math.nan

    @property
    def alarms(self) -> list[str]:
        """The gates that are not ok, each with its state."""
        return [f"{gate} {state}" for gate, state in self.gates.items() if state not in ("ok", "watching")]

    def _begin(self) -> None:
        self._events = RunEvents(self.run, latest=True)
        self._ending, self._told, self._raised_frames = "", False, 0
        self.latest: dict[str, Mapping[str, Any]] = {}
        """The last row of each table."""
        self.best_return = math.nan
        """Of full and final evaluations."""
        self.gates: dict[str, str] = {}
        self.notices: list[Notice | GateChanged] = []
        """What happened once, and the gates' alarms with their ends."""
        self._alarms = Alarms()

    def _take(self, event: Event) -> None:
        self._told = True
        if isinstance(event, Row):
            self.latest[event.table] = event.values
            self._take_evaluation(event)
        elif isinstance(event, GateChanged):
            self.gates[event.gate] = event.state
            if self._alarms.take(event):
                self.notices.append(event)
        elif isinstance(event, Notice):
            self._take_notice(event)

    def _take_evaluation(self, row: Row) -> None:
        if row.table == "eval_log" and row.values["eval_type"] != "light":
            value = row.values["mean_return"]
            self.best_return = (
                float(value) if math.isnan(self.best_return) else max(self.best_return, float(value))
            )

    def _take_notice(self, notice: Notice) -> None:
        self.notices.append(notice)
        if notice.kind in _BEGINNINGS:
            self._ending = ""
        self._ending = _ENDINGS.get(notice.kind, self._ending)
        if notice.kind in ("extended", "resumed"):
            self._raised_frames = int(notice.data.get("total_frames", self._raised_frames))


def identity_of(run: Path) -> Identity:
    """Return what a run is; `UserError` or `DamagedError` where its spec does not say."""
    path = run / "spec.toml"
    with reading(path):
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        spec = tomllib.loads(text)
        return Identity(
            game=str(spec["game"]),
            seed=int(spec["seed"]),
            track=str(spec["track"]),
            total_frames=int(spec["training"]["total_frames"]),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{path}: is not the complete spec of a run ({error})") from error


def _last_written(run: Path) -> float:
    times = []
    for name in ("update_log.csv", "train_log.csv", "events.jsonl", "eval_log.csv"):
        try:
            times.append((run / name).stat().st_mtime)
        except OSError:
            continue
    return max(times, default=0.0)
