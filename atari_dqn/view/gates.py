"""The failure gates in the live view: each with its state, and what the latest to change had to say."""

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
"""How a state is shown: apart without colours too."""

_COLUMNS = 2


class GatesPanel:
    """Every gate's state, in two columns."""

    title = "gates"

    def __init__(self) -> None:
        self._states: dict[str, GateState] = dict.fromkeys(GATES, "ok")

    def handle(self, event: Event) -> None:
        """Take a gate's new state."""
        if isinstance(event, GateChanged):
            self._states[event.gate] = event.state

    def period(self, record: Mapping[str, float]) -> None:
        """Take nothing."""

    def draw(self) -> RenderableType:
        """Return a mark and a name for each gate."""
        cells = [Text(f"{MARKS[state][0]} {gate}", MARKS[state][1]) for gate, state in self._states.items()]
        height = -(-len(cells) // _COLUMNS)
        table = Table.grid(padding=(0, 2, 0, 0))
        for place in range(height):
            table.add_row(*cells[place::height])
        return table
