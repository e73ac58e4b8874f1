"""The health gates in the live view, each with its state."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from atari_dqn.telemetry.events import GATES, Event, GateChanged, GateState

MARKS: dict[GateState, tuple[str, str]] = {
    "ok": ("·", "dim"),
    "watching": ("○", "cyan"),
    "warned": ("▲", "yellow"),
    "tripped": ("✖", "bold red"),
}
"""Mark and style of each state; the marks differ without colours too."""

_COLUMNS = 2


class GatesPanel:
    """Show every gate's state in two columns."""

    title = "gates"

    def __init__(self) -> None:
        self._states: dict[str, GateState] = dict.fromkeys(GATES, "ok")

    def handle(self, event: Event) -> None:
        """Store a gate's new state."""
        if isinstance(event, GateChanged):
            self._states[event.gate] = event.state

    def period(self, record: Mapping[str, float]) -> None:
        """Ignore a period: gates report each change."""

    def draw(self) -> RenderableType:
        """Draw a mark and a name for each gate."""
        entries = [Text(f"{MARKS[state][0]} {gate}", MARKS[state][1]) for gate, state in self._states.items()]
        height = -(-len(entries) // _COLUMNS)
        table = Table.grid(padding=(0, 2, 0, 0))
        for index in range(height):
            table.add_row(*entries[index::height])
        return table
