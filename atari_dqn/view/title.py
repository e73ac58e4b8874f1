"""Progress in the terminal's title, visible in the list of windows."""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType

from atari_dqn.formatting import duration, printable
from atari_dqn.telemetry.events import ENDINGS, Event, Notice
from atari_dqn.view.periods import Periods, RemainingTime


class TitleView:
    """Set the title to `42% 3h 05m pong_quick_seed1`, if the output is a terminal."""

    def __init__(self, *, name: str, total_frames: int, console: Console) -> None:
        self._name, self._total_frames = name, total_frames
        self._console = console
        self._periods = Periods()
        self._remaining = RemainingTime(total_frames)
        self._shown = ""
        self._show(self._name)

    def handle(self, event: Event) -> None:
        """Update the title at the end of a period and at the end of the run."""
        if isinstance(event, Notice) and event.kind in ENDINGS:
            ending = ENDINGS[event.kind]
            self._show(f"{'done' if ending == 'finished' else ending} {self._name}")
        record = self._periods.add(event)
        if record is not None:
            self._remaining.add(record)
            seconds = self._remaining.seconds()
            left = "" if seconds is None else f" {duration(seconds)}"
            self._show(f"{record['env_frames'] / self._total_frames:.0%}{left} {self._name}")

    def close(self) -> None:
        """Leave the title, which shows how the run ended."""

    def _show(self, title: str) -> None:
        if self._console.is_terminal and title != self._shown:
            self._shown = title
            self._console.control(Control((ControlType.SET_WINDOW_TITLE, printable(title))))
