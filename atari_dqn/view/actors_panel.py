"""The panel of actors: a line for each, from the latest notice about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from atari_dqn.formatting import count
from atari_dqn.telemetry.events import Event, Notice

ACTORS = "actors"
"""The kind of the notices, one for each period of the log."""


class ActorsPanel:
    """Show the state, speed, ε, lag, drops and restarts of actors; empty for a run without actors."""

    title = "actors"

    def __init__(self) -> None:
        self._data: Mapping[str, Any] | None = None

    @property
    def has_actors(self) -> bool:
        """Whether the run has actors."""
        return self._data is not None

    @property
    def lines(self) -> int:
        """Height of the panel, with its border and heading."""
        return 3 + min(8, len(self._data["actors"])) if self._data is not None else 0

    def handle(self, event: Event) -> None:
        """Store the latest report."""
        if isinstance(event, Notice) and event.kind == ACTORS:
            self._data = event.data

    def period(self, record: Mapping[str, float]) -> None:
        """Ignore a period: reports are notices."""

    def draw(self) -> RenderableType:
        """Draw a table."""
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_row("actor", "state", "frames/s", "ε", "lag", "dropped", "restarts", style="dim")
        for actor in (self._data or {}).get("actors", ()):
            epsilon = actor["epsilon"]
            table.add_row(
                str(actor["actor"]),
                actor["state"],
                count(round(actor["frames_per_second"])),
                "-" if epsilon is None else f"{epsilon:.3g}",
                f"{actor['lag_updates']:.0f}",
                count(actor["dropped_steps"]),
                str(actor["restarts"]),
            )
        return table
