"""The heading of the live view: title, current activity, progress and speed, updated at every drawing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from atari_dqn.formatting import count, duration, printable
from atari_dqn.telemetry.events import Counters, Event, Notice, Progress, Row, TrainingStarted
from atari_dqn.view.periods import RemainingTime, Speed


class Header:
    """Show the title of a run, its current activity, its progress, its speed and the remaining time.

    Frames and speed come from the run's counters, which are read at every drawing. A run that is read from
    its files has no counters: `state_text` returns the text that replaces the activity, and the latest
    period gives frames and speed.
    """

    def __init__(
        self,
        *,
        title: str,
        total_frames: int,
        state_text: Callable[[], str] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._title, self._total_frames, self._state_text = printable(title), total_frames, state_text
        self._remaining = RemainingTime(total_frames)
        self._now, self._start_seconds = now, now()
        self._speed = Speed(now)
        self._phase, self._activity = "starting", ""
        self._counters: Counters | None = None
        self._record: Mapping[str, float] = {}
        self._reported_frames = 0

    def handle(self, event: Event) -> None:
        """Update the current activity from an event; an activity ends when all of its parts are done."""
        if isinstance(event, Progress):
            finished = event.done >= event.total
            self._activity = "" if finished else f"{event.activity} {event.done}/{event.total}"
        elif isinstance(event, TrainingStarted):
            self._counters = event.counters
        elif isinstance(event, Row) and event.table == "eval_log":
            self._reported_frames = max(self._reported_frames, int(event.values["env_frames"]))
        elif isinstance(event, Notice):
            self._reported_frames = max(self._reported_frames, event.env_frames)
            if event.kind == "compiling":
                self._phase = "compiling"

    def period(self, record: Mapping[str, float]) -> None:
        """Update progress and speed from the record of a period."""
        self._record = record
        self._remaining.add(record)

    def draw(self, columns: int = 80) -> RenderableType:
        """Draw the title with the activity, above a line with the progress, for a terminal of this width."""
        frames = self._read_counters()
        head = Table.grid(expand=True, padding=(0, 1, 0, 0))
        head.add_column(no_wrap=True, ratio=1)
        head.add_column(no_wrap=True, justify="right")
        head.add_row(Text(self._title, style="bold"), Text(self._state(), style="cyan"))
        line = Table.grid(expand=True, padding=(0, 2, 0, 0))
        line.add_column(ratio=1)
        line.add_column(no_wrap=True, justify="right")
        line.add_row(ProgressBar(total=self._total_frames, completed=frames), self._figures(frames, columns))
        return Group(head, line)

    def _read_counters(self) -> float:
        """Read the current number of frames and update the measured speed."""
        if self._counters is None:
            return max(self._record.get("env_frames", 0.0), self._reported_frames)
        phase = "filling the replay" if self._counters.filling else "training"
        if phase != self._phase:
            self._phase = phase
            self._speed.restart()
        self._speed.add(self._counters.env_frames)
        return self._counters.env_frames

    def _state(self) -> str:
        if self._state_text is not None:
            return self._state_text()
        if self._counters is None and self._record:
            self._phase = "training" if self._record["updates"] else "filling the replay"
        return f"{self._activity or self._phase}  {duration(self._now() - self._start_seconds)}"

    def _rate(self) -> float:
        """Compute frames per second over the latest seconds; without counters, over the latest period."""
        if self._counters is None:
            return self._record.get("frames_per_second", 0.0)
        rate = self._speed.frames_per_second()
        return 0.0 if math.isnan(rate) else rate

    def _figures(self, frames: float, columns: int) -> str:
        """Format frames, speed and remaining time; a narrow terminal lacks those that do not fit."""
        rate, seconds = self._rate(), self._remaining.seconds(frames)
        if seconds is None and self._phase == "training" and self._counters is not None and rate > 0:
            seconds = (self._total_frames - frames) / rate
        left = "-" if seconds is None else duration(seconds)
        done = f"{count(frames):>6}/{count(self._total_frames)}"
        share = f"{min(1.0, frames / self._total_frames):>6.1%}"
        text = f"{done} {share}  {rate:>7,.0f} frames/s  {left:>7} left"
        parts = [done, f"{rate:,.0f} frames/s", share, f"{left} left"]
        while len(text) > columns and parts:
            text = "  ".join(part.strip() for part in parts)
            parts = parts[1:]
        return text
