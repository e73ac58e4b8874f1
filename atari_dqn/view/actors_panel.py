"""The panel of actors: a line for each, from the latest notice about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from atari_dqn.formatting import count, plural, printable
from atari_dqn.telemetry.events import ACTORS, Event, Notice

_FRAME_LINES = 3
"""The panel's border and heading."""
_LEAST_ACTORS = 2
_MOST_ACTORS = 8


class _Actor(msgspec.Struct):
    """The state of one actor."""

    actor: int
    state: str
    frames_per_second: float
    lag_updates: float
    dropped_steps: int
    restarts: int
    epsilon: float | None = None


class _Report(msgspec.Struct):
    """The data of a notice, which for a run of another process comes from a file."""

    actors: list[_Actor]
    """The slowest ones, if there are many."""
    num_actors: int | None = None
    """None in logs of earlier versions."""
    frames_per_second: float = math.nan
    max_lag_updates: int = 0


class ActorsPanel:
    """Show the state, speed, ε, lag, drops and restarts of actors; empty for a run without actors."""

    title = "actors"

    def __init__(self) -> None:
        self._report = _Report(actors=[])
        self._lines = 0

    def set_lines(self, most: int) -> int:
        """Choose the height of the panel with its border, at most `most` lines; 0 if there is no room."""
        actors = len(self._report.actors)
        shown = min(actors, _MOST_ACTORS, most - _FRAME_LINES)
        is_shown = shown >= min(_LEAST_ACTORS, actors) and shown > 0
        self._lines = shown + _FRAME_LINES if is_shown else 0
        return self._lines

    @property
    def summary(self) -> str:
        """All actors in a few words; empty for a run without actors."""
        report = self._report
        if not report.actors:
            return ""
        rate = report.frames_per_second
        speed = f", {count(round(rate))} f/s" if math.isfinite(rate) else ""
        return f"{plural(self._num_actors, 'actor')}{speed}, lag ≤ {report.max_lag_updates:,}"

    @property
    def _num_actors(self) -> int:
        return self._report.num_actors or len(self._report.actors)

    def handle(self, event: Event) -> None:
        """Store the latest report."""
        if isinstance(event, Notice) and event.kind == ACTORS:
            with suppress(msgspec.ValidationError):
                self._report = msgspec.convert(dict(event.data), _Report)

    def period(self, record: Mapping[str, float]) -> None:
        """Ignore a period: reports are notices."""

    def draw(self) -> RenderableType:
        """Draw a table, whose last line counts the actors for which it has no room."""
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_row("actor", "state", "frames/s", "ε", "lag", "dropped", "restarts", style="dim")
        room = self._lines - _FRAME_LINES
        actors = self._report.actors
        shown = actors if self._num_actors <= room else actors[: room - 1]
        for actor in shown:
            table.add_row(
                str(actor.actor),
                Text(printable(actor.state)),
                count(round(actor.frames_per_second)),
                "-" if actor.epsilon is None else f"{actor.epsilon:.3g}",
                f"{actor.lag_updates:.0f}",
                count(actor.dropped_steps),
                str(actor.restarts),
            )
        if len(shown) < self._num_actors:
            table.add_row("", f"and {self._num_actors - len(shown)} more", style="dim")
        return table
