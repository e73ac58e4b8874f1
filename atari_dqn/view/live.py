"""The live view: a screen of panels that is redrawn a few times a second, whatever the training does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel as Box
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from atari_dqn.human import count, duration
from atari_dqn.metrics.events import Event, Progress
from atari_dqn.reference.match import Subject
from atari_dqn.view.evaluations import EvaluationsPanel
from atari_dqn.view.gates import GatesPanel
from atari_dqn.view.panels import (
    LearningPanel,
    NoticesPanel,
    Panel,
    Part,
    ReplayPanel,
    ReturnsPanel,
    ThroughputPanel,
)
from atari_dqn.view.periods import Periods, RemainingTime

_HEADER_LINES = 2
_COLUMNS = {"gates": 32, "throughput": 20, "replay": 20}
"""Widths of panels, by title; the others of a row share what is left."""
_SNAPSHOT_LINES = 24
"""What every panel needs to be whole, the gates' five lines among them."""


def suits_live_view(console: Console) -> bool:
    """Return whether a console can show the live view: a terminal that knows more than ASCII."""
    return console.is_terminal and not console.is_dumb_terminal and not console.options.ascii_only


class LiveView:
    """Shows a run on a whole terminal, at least 80×24, from construction until `close`.

    `subject` is what the run's evaluations are scores of: published ones are shown beside them.
    Handling an event only keeps its values. Drawing happens on rich's own thread: 8 ms a time, so that once a
    second costs under 1 % of a core. Events and drawing share one lock.
    """

    def __init__(
        self,
        *,
        title: str,
        total_frames: int,
        subject: Subject,
        console: Console,
        refreshes_per_second: float = 1.0,
    ) -> None:
        self._header = Header(title=title, total_frames=total_frames)
        self._periods = Periods()
        self._rows = _panel_rows(subject)
        self._parts: list[Part] = [self._header, *(panel for _, row in self._rows for panel in row)]
        self._lock = Lock()
        self._console = console
        self._told = False
        self._live = Live(
            console=console,
            screen=console.is_terminal,
            refresh_per_second=refreshes_per_second,
            get_renderable=self.draw,
        )
        self._live.start()

    def handle(self, event: Event) -> None:
        """Give an event to every panel."""
        with self._lock:
            self._told = True
            record = self._periods.add(event)
            for part in self._parts:
                part.handle(event)
                if record is not None:
                    part.period(record)

    def draw(self) -> RenderableType:
        """Return the screen as it is now."""
        layout = Layout()
        with self._lock:
            rows = [Layout(self._header.draw(), size=_HEADER_LINES)]
            rows += [_layout_row(size, row) for size, row in self._rows]
        layout.split_column(*rows)
        return layout

    def close(self) -> None:
        """Give the terminal back, and leave the last picture, if there was one; safe to call twice."""
        if not self._live.is_started:
            return
        self._live.stop()
        if self._told and self._console.is_terminal:  # the view had a screen of its own, which is gone now
            self._console.print(self.draw(), height=_SNAPSHOT_LINES)


class Header:
    """What runs, what it is doing, how far it is and how long it will take."""

    def __init__(self, *, title: str, total_frames: int) -> None:
        self._title = title
        self._total_frames = total_frames
        self._remaining = RemainingTime(total_frames)
        self._activity = ""
        self._record: Mapping[str, float] = {}

    def handle(self, event: Event) -> None:
        """Take how far an activity is; it is over with its last part."""
        if isinstance(event, Progress):
            over = event.done >= event.total
            self._activity = "" if over else f"{event.activity} {event.done}/{event.total}"

    def period(self, record: Mapping[str, float]) -> None:
        """Take how far the run is."""
        self._record = record
        self._remaining.add(record)

    def draw(self) -> RenderableType:
        """Return the title with the activity, and below it the progress."""
        head = Table.grid(expand=True)
        head.add_column(no_wrap=True, ratio=1)
        head.add_column(no_wrap=True, justify="right")
        head.add_row(Text(self._title, style="bold"), Text(self._state(), style="cyan"))
        line = Table.grid(expand=True, padding=(0, 2, 0, 0))
        line.add_column(ratio=1)
        line.add_column(no_wrap=True, justify="right")
        frames = self._record.get("env_frames", 0.0)
        line.add_row(ProgressBar(total=self._total_frames, completed=frames), self._figures(frames))
        return Group(head, line)

    def _state(self) -> str:
        if self._activity or not self._record:
            return self._activity or "starting"
        return "training" if self._record["updates"] else "filling the replay at random"

    def _figures(self, frames: float) -> str:
        seconds = self._remaining.seconds()
        left = "-" if seconds is None else duration(seconds)
        rate = self._record.get("frames_per_second", 0.0)
        done = f"{count(frames):>6}/{count(self._total_frames)} {frames / self._total_frames:>6.1%}"
        return f"{done}  {rate:>7,.0f} frames/s  {left:>7} left"


def _panel_rows(subject: Subject) -> tuple[tuple[int | None, tuple[Panel, ...]], ...]:
    """Return the panels row by row, each row with its height in lines; None takes what is left."""
    return (
        (7, (LearningPanel(), ReturnsPanel())),
        (8, (EvaluationsPanel(subject), ReplayPanel(), ThroughputPanel())),
        (None, (NoticesPanel(), GatesPanel())),
    )


def _layout_row(size: int | None, panels: Sequence[Panel]) -> Layout:
    row = Layout(size=size)
    row.split_row(*(Layout(_box(panel), size=_COLUMNS.get(panel.title)) for panel in panels))
    return row


def _box(panel: Panel) -> Box:
    return Box(panel.draw(), title=panel.title, title_align="left", border_style="dim")
