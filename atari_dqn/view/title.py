"""Progress in the terminal's title, visible in the list of windows."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from atari_dqn.formatting import duration, printable
from atari_dqn.telemetry.events import ENDINGS, Event, Notice, Row
from atari_dqn.view.periods import Periods, RemainingTime
from atari_dqn.view.terminal import is_in_foreground, is_on_terminal


class TitleView:
    """Set the title to `42% 3h 05m pong_quick_seed1`, if the output is a terminal."""

    def __init__(self, *, name: str, total_frames: int, console: Console) -> None:
        self._name, self._total_frames = name, total_frames
        self._console = console
        self._periods = Periods()
        self._remaining = RemainingTime(total_frames)
        self._title, self._shown = name, ""
        self._show()

    def handle(self, event: Event) -> None:
        """Update the title at the end of a period and at the end of the run."""
        self.handle_all((event,))

    def handle_all(self, events: Iterable[Event]) -> None:
        """Update the title once, after the last of some events."""
        for event in events:
            self._read(event)
        self._show()

    def _read(self, event: Event) -> None:
        if isinstance(event, Notice) and event.kind in ENDINGS:
            ending = ENDINGS[event.kind]
            self._title = f"{'done' if ending == 'finished' else ending} {self._name}"
        record = self._periods.add(event)
        if record is not None:
            self._remaining.add(record)
            seconds = self._remaining.seconds()
            left = "" if seconds is None else f" {duration(seconds)}"
            self._title = f"{self._share(record['env_frames'])}{left} {self._name}"
        elif isinstance(event, Row) and event.table == "eval_log" and event.values["eval_type"] == "final":
            self._title = f"{self._share(float(event.values['env_frames']))} {self._name}"

    def _share(self, frames: float) -> str:
        return f"{min(1.0, frames / self._total_frames):.0%}"

    def close(self) -> None:
        """Leave the title, which shows how the run ended."""

    def _show(self) -> None:
        may_write = is_on_terminal(self._console) and is_in_foreground(self._console)
        if may_write and self._title != self._shown:
            self._shown = self._title
            self._console.control(Control((ControlType.SET_WINDOW_TITLE, printable(self._title))))
