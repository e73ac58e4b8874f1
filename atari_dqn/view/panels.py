"""The panels of the live view. Each stores the values that it shows and draws them on request.

A panel draws into any given size; `LiveView` arranges them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

from rich.console import JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from atari_dqn.formatting import count, measure, percentage, printable, printable_lines, score
from atari_dqn.telemetry.alerts import Alerts
from atari_dqn.telemetry.events import ACTORS, Event, GateChanged, Notice, Row

_HISTORY_PERIODS = 60
_LEVELS = "▁▂▃▄▅▆▇█"


class Part(Protocol):
    """A part of the live view that is drawn from events."""

    def handle(self, event: Event) -> None:
        """Store the values of an event that the part shows. It runs on the training thread: keep it quick."""
        ...

    def period(self, record: Mapping[str, float]) -> None:
        """Store a period's joined record."""
        ...

    def draw(self) -> RenderableType:
        """Draw the present values."""
        ...


class Panel(Part, Protocol):
    """A part in a box with a title."""

    title: str


class LearningPanel:
    """Show the loss, values and gradients of the latest period, their history, and a report.

    The report is of faults of the predictions, or of the staleness of recurrent states.
    """

    title = "learning"
    _rows = (
        ("loss", "loss"),
        ("mean Q", "mean_q"),
        ("TD error", "mean_abs_td_error"),
        ("grad norm", "grad_norm"),
        ("epsilon", "epsilon"),  # the last one: the report replaces its history
    )
    _reported = (
        ("low edge", "lowest_atom_mass"),
        ("high edge", "highest_atom_mass"),
        ("crossed", "crossed_share"),
        ("ΔQ", "last_delta_q"),
    )

    def __init__(self, mixed_epsilon: str = "") -> None:
        self._last_label = "mean ε" if mixed_epsilon else "epsilon"
        self._history = {name: deque[float](maxlen=_HISTORY_PERIODS) for _, name in self._rows}
        self._values: dict[str, float] = {}

    def handle(self, event: Event) -> None:
        """Store statistics of the predictions and of a memory."""
        if isinstance(event, Row) and event.table in ("prediction_log", "memory_log"):
            self._values |= {name: float(value) for name, value in event.values.items()}

    def period(self, record: Mapping[str, float]) -> None:
        """Store a period's values."""
        for name, values in self._history.items():
            values.append(record[name])

    def draw(self) -> RenderableType:
        """Draw each value with its history; the report replaces the history of ε."""
        table = _grid("left", "right", "left")
        last = self._rows[-1][1]
        for label, name in self._rows:
            values = self._history[name]
            history = self._report() if name == last else ""
            table.add_row(
                self._last_label if name == last else label,
                measure(values[-1]) if values else "-",
                _cropped(history or sparkline(values, width=15)),
            )
        return table

    def _report(self) -> str:
        """Format the larger mass on an edge atom, the share of crossed quantiles, or ΔQ; empty if zero."""
        found = [(self._values.get(name, math.nan), label) for label, name in self._reported]
        share, label = max(((share, label) for share, label in found if share > 0), default=(0.0, ""))
        return f"{label} {percentage(share)}" if label else ""


class ReturnsPanel:
    """Show the returns of training episodes. With a mix of ε the title says so: they are no score."""

    def __init__(self, mixed_epsilon: str = "") -> None:
        self.title = f"training returns, {mixed_epsilon}" if mixed_epsilon else "training returns"
        self._returns: deque[float] = deque(maxlen=12)
        self._rolling: deque[float] = deque(maxlen=_HISTORY_PERIODS)
        self._episodes = 0
        self._best = -math.inf

    def handle(self, event: Event) -> None:
        """Store the return of a finished episode."""
        if isinstance(event, Row) and event.table == "train_log":
            self._returns.append(float(event.values["episode_return"]))
            self._episodes = int(event.values["episode_number"])
            self._best = max(self._best, self._returns[-1])

    def period(self, record: Mapping[str, float]) -> None:
        """Store the rolling mean."""
        self._rolling.append(record["rolling_return"])

    def draw(self) -> RenderableType:
        """Draw the rolling mean and its history, then the latest episodes."""
        table = _grid("left", "left")
        table.add_row("rolling mean", score(self._rolling[-1]) if self._rolling else "-")
        table.add_row("", _cropped(sparkline(self._rolling, width=22)))
        table.add_row("best", score(self._best) if self._returns else "-")
        table.add_row("latest", _cropped(fitting(reversed(self._returns), width=22)))
        table.add_row("episodes", f"{self._episodes:,}")
        return table


class ThroughputPanel:
    """Show the rate of updates, and the share of each part in the training time."""

    title = "throughput"
    _parts = ("learn", "optimize", "sample", "act", "emulate")

    def __init__(self) -> None:
        self._record: Mapping[str, float] = {}

    def handle(self, event: Event) -> None:
        """Ignore events: throughput comes with the period."""

    def period(self, record: Mapping[str, float]) -> None:
        """Store the latest period."""
        self._record = record

    def draw(self) -> RenderableType:
        """Draw a row for the rate and one for each part."""
        if not self._record:
            return Text("none yet", style="dim")
        table = _grid("left", "right")
        table.add_row("updates/s", count(self._record["updates_per_second"]))
        for part in self._parts:
            share = self._record[f"{part}_share"]
            table.add_row(part, f"{share:.0%}" if math.isfinite(share) else "-")
        return table


class ReplayPanel:
    """Show age, weights and terminal share of the transitions that are sampled."""

    title = "replay"

    def __init__(self) -> None:
        self._values: Mapping[str, float] = {}

    def handle(self, event: Event) -> None:
        """Store statistics of the replay."""
        if isinstance(event, Row) and event.table == "replay_log":
            self._values = {name: float(value) for name, value in event.values.items()}

    def period(self, record: Mapping[str, float]) -> None:
        """Ignore a period: the replay's statistics have a period of their own."""

    def draw(self) -> RenderableType:
        """Draw a row for each figure."""
        if not self._values:
            return Text("none yet", style="dim")
        values, table = self._values, _grid("left", "right")
        table.add_row("size", count(values["transitions"]))
        table.add_row("age", count(values["median_age_steps"]))
        table.add_row("effective", percentage(values["effective_share"], decimals=0))
        table.add_row("β", f"{values['beta']:.3f}")
        table.add_row("weight", f"{values['mean_weight']:.3f}")
        table.add_row("terminal", percentage(values["terminal_share"]))
        return table


class NoticesPanel:
    """Show notices and alerts, newest first."""

    title = "notices"

    def __init__(self) -> None:
        self._notices: deque[tuple[int, str, str]] = deque(maxlen=20)
        self._alerts = Alerts()

    def handle(self, event: Event) -> None:
        """Store a notice, or the alert of a gate."""
        if isinstance(event, Notice) and event.kind != ACTORS:
            self._notices.appendleft(
                (event.env_frames, printable(event.kind), printable_lines(event.message))
            )
        elif isinstance(event, GateChanged) and self._alerts.update(event):
            text = f"{event.gate} {event.state}: {printable_lines(event.message)}"
            self._notices.appendleft((event.env_frames, "gate", text))

    def period(self, record: Mapping[str, float]) -> None:
        """Ignore a period: notices are events."""

    def draw(self) -> RenderableType:
        """Draw a paragraph for each notice."""
        table = _grid("right", "left", "left")
        table.columns[-1].overflow = "fold"  # commands and paths are read whole
        for env_frames, kind, message in self._notices:
            # Text, not str: a message may hold brackets, which rich would read as markup.
            table.add_row(Text(count(env_frames), style="dim"), Text(kind), Text(message))
        return table


def sparkline(values: Iterable[float], *, width: int) -> str:
    """Draw the latest `width` values as bars of text; NaN is a gap, a constant a line at the bottom."""
    latest = list(values)[-width:]
    finite = [value for value in latest if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    return "".join(_level(value, low, high) for value in latest)


def _level(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return " "
    fraction = (value - low) / (high - low) if high > low else 0.0
    return _LEVELS[min(len(_LEVELS) - 1, int(fraction * len(_LEVELS)))]


def fitting(scores: Iterable[float], *, width: int) -> str:
    """Join as many scores, from the first, as fit into `width`."""
    text = ""
    for value in scores:
        longer = f"{text} {value:,.0f}".lstrip()
        if len(longer) > width:
            break
        text = longer
    return text


def _grid(*justify: JustifyMethod) -> Table:
    """Create a table without lines whose last column shrinks first."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for index, side in enumerate(justify, start=1):
        table.add_column(justify=side, no_wrap=index < len(justify))
    return table


def _cropped(text: str) -> Text:
    """Create a text that is cut, not wrapped, where it is too long."""
    return Text(text, no_wrap=True, overflow="crop")
