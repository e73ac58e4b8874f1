"""The live view: a screen of panels that is redrawn once a second, independently of the training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.layout import Layout
from rich.panel import Panel as Box

from atari_dqn.compare.reference.match import Subject
from atari_dqn.telemetry.events import Event
from atari_dqn.view.actors_panel import ActorsPanel
from atari_dqn.view.evaluations import EvaluationsPanel
from atari_dqn.view.gates import GatesPanel
from atari_dqn.view.header import Header
from atari_dqn.view.panels import (
    LearningPanel,
    NoticesPanel,
    Panel,
    Part,
    ReplayPanel,
    ReturnsPanel,
    ThroughputPanel,
)
from atari_dqn.view.periods import Periods
from atari_dqn.view.suspendable_live import SuspendableLive

_HEADER_LINES = 2
_COLUMNS = {"gates": 32, "throughput": 20, "replay": 20}
"""Widths of panels, by title; the others of a row share the remaining width."""
_NEEDED_COLUMNS = {"evaluations": 40, "notices": 44}
"""The least widths of panels that share a row, by the first word of their titles."""
_FEWEST_COLUMNS = 28
"""The least width of any other. In a narrower terminal the row has fewer panels."""
_LINES = 24
"""Height that shows every panel in full, but no table of actors."""
_ALERT_LINES = 7
"""Height of the row that shows every gate. On fewer than 24 lines, the rows above it shrink."""
_FEWEST_LINES = 3
"""Height of a box with one line in it."""


Rows = tuple[tuple[int | None, tuple[Panel, ...]], ...]
"""Rows of panels with their heights; None fills the rest of the screen."""


class LiveView:
    """Show a run on a whole terminal, in full from 80×24 on, from construction until `close`.

    A smaller terminal has fewer panels.

    Actors have a table where the terminal has lines to spare, and else are summed up over the notices.

    `subject` describes the run's evaluations and selects the published scores that are shown with them.
    `state_text` describes the present state of a run of another process; a run of this process has counters.
    `mixed_epsilon` is the range of ε as text if it differs between environments.
    Handling an event only stores its values. rich draws on a thread of its own: 8 ms once a second, which is
    less than 1 % of a core. Events and drawing share one lock.
    """

    def __init__(
        self,
        *,
        title: str,
        total_frames: int,
        subject: Subject,
        console: Console,
        state_text: Callable[[], str] | None = None,
        mixed_epsilon: str = "",
        refreshes_per_second: float = 1.0,
    ) -> None:
        self._header = Header(title=title, total_frames=total_frames, state_text=state_text)
        self._periods = Periods()
        self._notices = NoticesPanel()
        self._rows = _panel_rows(subject, mixed_epsilon, self._notices)
        self._actors = ActorsPanel()
        panels = (panel for _, row in self._rows for panel in row)
        self._parts: list[Part] = [self._header, *panels, self._actors]
        self._lock = Lock()
        self._console = console
        self._has_events = False
        self._live = SuspendableLive(
            console=console,
            screen=console.is_terminal,
            refresh_per_second=refreshes_per_second,
            get_renderable=self.draw,
        )
        self._live.start()

    def handle(self, event: Event) -> None:
        """Pass an event to every panel."""
        with self._lock:
            self._has_events = True
            record = self._periods.add(event)
            for part in self._parts:
                part.handle(event)
                if record is not None:
                    part.period(record)

    def draw(self) -> RenderableType:
        """Draw the whole screen."""
        return _Screen(self._layout)

    def _layout(self, columns: int, lines: int) -> Layout:
        layout = Layout()
        with self._lock:
            actor_lines = self._actors.set_lines(lines - _LINES)
            self._notices.title = "notices" if actor_lines else self._notices_title()
            rows = [Layout(self._header.draw(columns), size=_HEADER_LINES)]
            rows += [_layout_row(size, _fitting(row, columns)) for size, row in _shrunk(self._rows, lines)]
            if actor_lines:
                rows.insert(-1, _layout_row(actor_lines, (self._actors,)))
        layout.split_column(*rows)
        return layout

    def _notices_title(self) -> str:
        return " · ".join(filter(None, ("notices", self._actors.summary)))

    def close(self) -> None:
        """Restore the terminal and print the last screen, if any event came; safe to call twice."""
        if not self._live.is_started:
            return
        self._live.stop()
        if self._has_events and self._console.is_terminal:  # rich has closed the alternate screen
            self._console.print(self.draw(), height=_LINES + self._actors.set_lines(_LINES))


class _Screen:
    """A layout that is made for the size on which it is drawn."""

    def __init__(self, layout: Callable[[int, int], Layout]) -> None:
        self._layout = layout

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._layout(options.max_width, options.height or console.height)


def _panel_rows(subject: Subject, mixed_epsilon: str, notices: NoticesPanel) -> Rows:
    """Build the panels row by row, each row with its height in lines."""
    return (
        (7, (LearningPanel(mixed_epsilon), ReturnsPanel(mixed_epsilon))),
        (8, (EvaluationsPanel(subject), ReplayPanel(), ThroughputPanel())),
        (None, (notices, GatesPanel())),
    )


def _shrunk(rows: Rows, lines: int) -> Iterator[tuple[int | None, tuple[Panel, ...]]]:
    """Shrink rows, the lowest first, until that of notices and gates has its lines; leave out empty ones."""
    left = lines - _HEADER_LINES - _ALERT_LINES
    for size, row in rows:
        if size is None:
            yield size, row
        elif min(size, left) >= _FEWEST_LINES:
            yield min(size, left), row
            left -= size


def _fitting(row: Sequence[Panel], columns: int) -> Sequence[Panel]:
    """Leave out the last panels of a row until each of the others has its width; the first one stays."""
    needed = sum(map(_needed_columns, row))
    return row if needed <= columns or len(row) == 1 else _fitting(row[:-1], columns)


def _needed_columns(panel: Panel) -> int:
    return _COLUMNS.get(panel.title) or _NEEDED_COLUMNS.get(panel.title.split()[0], _FEWEST_COLUMNS)


def _layout_row(size: int | None, panels: Sequence[Panel]) -> Layout:
    row = Layout(size=size)
    row.split_row(*(Layout(_box(panel), size=_COLUMNS.get(panel.title)) for panel in panels))
    return row


def _box(panel: Panel) -> Box:
    return Box(panel.draw(), title=panel.title, title_align="left", border_style="dim")
