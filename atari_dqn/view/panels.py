"""The parts of the live view. Each keeps what it shows of the events, and draws it when asked.

A panel draws into what room it is given; `LiveView` says where each lies.
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
from atari_dqn.telemetry.events import Event, GateChanged, Notice, Row

_HISTORY_PERIODS = 60
_LEVELS = "▁▂▃▄▅▆▇█"


class Part(Protocol):
    """A part of the live view."""

    def handle(self, event: Event) -> None:
        """Take what the part shows of an event; cheap, for it is called on the training's own thread."""
        ...

    def period(self, record: Mapping[str, float]) -> None:
        """Take a period's joined record."""
        ...

    def draw(self) -> RenderableType:
        """Return what the part shows now."""
        ...


class Panel(Part, Protocol):
    """A part in a box with a title."""

    title: str


class LearningPanel:
    """Loss, values and gradients of the latest period, the predictions' latest report, and their course."""

    title = "learning"
    _rows = (
        ("loss", "loss"),
        ("mean Q", "mean_q"),
        ("TD error", "mean_abs_td_error"),
        ("grad norm", "grad_norm"),
        ("epsilon", "epsilon"),
    )
    _reported = (
        ("low edge", "lowest_atom_mass"),
        ("high edge", "highest_atom_mass"),
        ("crossed", "crossed_share"),
    )

    def __init__(self) -> None:
        self._history = {name: deque[float](maxlen=_HISTORY_PERIODS) for _, name in self._rows}
        self._report: Mapping[str, float] = {}

    def handle(self, event: Event) -> None:
        """Take a report of the predictions."""
        if isinstance(event, Row) and event.table == "prediction_log":
            self._report = {name: float(value) for name, value in event.values.items()}

    def period(self, record: Mapping[str, float]) -> None:
        """Take a period's values."""
        for name, values in self._history.items():
            values.append(record[name])

    def draw(self) -> RenderableType:
        """Return a row for each value; beside the last, ε, what a distribution's report says."""
        table = _grid("left", "right", "left")
        last = self._rows[-1][1]
        for label, name in self._rows:
            values = self._history[name]
            course = self._told() if name == last else ""
            table.add_row(
                label, measure(values[-1]) if values else "-", _cropped(course or sparkline(values, width=15))
            )
        return table

    def _told(self) -> str:
        """Return the mass on the fuller edge of a support, or how many quantiles crossed, if any did."""
        found = [(self._report.get(name, math.nan), label) for label, name in self._reported]
        share, label = max(((share, label) for share, label in found if share > 0), default=(0.0, ""))
        return f"{label} {percentage(share)}" if label else ""


class ReturnsPanel:
    """What training episodes scored."""

    title = "training returns"

    def __init__(self) -> None:
        self._returns: deque[float] = deque(maxlen=12)
        self._rolling: deque[float] = deque(maxlen=_HISTORY_PERIODS)
        self._episodes = 0
        self._best = -math.inf

    def handle(self, event: Event) -> None:
        """Take an episode that ended."""
        if isinstance(event, Row) and event.table == "train_log":
            self._returns.append(float(event.values["episode_return"]))
            self._episodes = int(event.values["episode_number"])
            self._best = max(self._best, self._returns[-1])

    def period(self, record: Mapping[str, float]) -> None:
        """Take the rolling mean."""
        self._rolling.append(record["rolling_return"])

    def draw(self) -> RenderableType:
        """Return the rolling mean and its course, then the latest episodes."""
        table = _grid("left", "left")
        table.add_row("rolling mean", score(self._rolling[-1]) if self._rolling else "-")
        table.add_row("", _cropped(sparkline(self._rolling, width=22)))
        table.add_row("best", score(self._best) if self._returns else "-")
        table.add_row("latest", _cropped(fitting(reversed(self._returns), width=22)))
        table.add_row("episodes", f"{self._episodes:,}")
        return table


class ThroughputPanel:
    """How fast the run is, and where its time goes."""

    title = "throughput"
    _parts = ("learn", "optimize", "sample", "act", "emulate")

    def __init__(self) -> None:
        self._record: Mapping[str, float] = {}

    def handle(self, event: Event) -> None:
        """Take nothing."""

    def period(self, record: Mapping[str, float]) -> None:
        """Take a period's split."""
        self._record = record

    def draw(self) -> RenderableType:
        """Return the rate of updates, then each part's share of the training time."""
        if not self._record:
            return Text("none yet", style="dim")
        table = _grid("left", "right")
        table.add_row("updates/s", f"{self._record['updates_per_second']:,.0f}")
        for part in self._parts:
            share = self._record[f"{part}_share"]
            table.add_row(part, f"{share:.0%}" if math.isfinite(share) else "-")
        return table


class ReplayPanel:
    """How old, how terminal and how evenly weighted the transitions are that are learned from."""

    title = "replay"

    def __init__(self) -> None:
        self._report: Mapping[str, float] = {}

    def handle(self, event: Event) -> None:
        """Take a report."""
        if isinstance(event, Row) and event.table == "replay_log":
            self._report = {name: float(value) for name, value in event.values.items()}

    def period(self, record: Mapping[str, float]) -> None:
        """Take nothing: reports have a period of their own."""

    def draw(self) -> RenderableType:
        """Return a row for each figure."""
        if not self._report:
            return Text("none yet", style="dim")
        report, table = self._report, _grid("left", "right")
        table.add_row("size", count(report["transitions"]))
        table.add_row("age", count(report["median_age_steps"]))
        table.add_row("effective", percentage(report["effective_share"], decimals=0))
        table.add_row("β", f"{report['beta']:.3f}")
        table.add_row("weight", f"{report['mean_weight']:.3f}")
        table.add_row("terminal", percentage(report["terminal_share"]))
        return table


class NoticesPanel:
    """What happened once, newest first."""

    title = "notices"

    def __init__(self) -> None:
        self._notices: deque[tuple[int, str, str]] = deque(maxlen=20)
        self._alerts = Alerts()

    def handle(self, event: Event) -> None:
        """Take a notice, or a failure gate's alarm."""
        if isinstance(event, Notice):
            self._notices.appendleft(
                (event.env_frames, printable(event.kind), printable_lines(event.message))
            )
        elif isinstance(event, GateChanged) and self._alerts.update(event):
            text = f"{event.gate} {event.state}: {printable_lines(event.message)}"
            self._notices.appendleft((event.env_frames, "gate", text))

    def period(self, record: Mapping[str, float]) -> None:
        """Take nothing."""

    def draw(self) -> RenderableType:
        """Return a paragraph for each notice."""
        table = _grid("right", "left", "left")
        for env_frames, kind, message in self._notices:
            # Text, not str: a message may hold brackets, which rich would take for its markup.
            table.add_row(Text(count(env_frames), style="dim"), Text(kind), Text(message))
        return table


def sparkline(values: Iterable[float], *, width: int) -> str:
    """Return the course of the latest `width` values; NaN is a gap, a constant a line at the bottom."""
    latest = list(values)[-width:]
    finite = [value for value in latest if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    return "".join(_level(value, low, high) for value in latest)


def _level(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return " "
    place = (value - low) / (high - low) if high > low else 0.0
    return _LEVELS[min(len(_LEVELS) - 1, int(place * len(_LEVELS)))]


def fitting(scores: Iterable[float], *, width: int) -> str:
    """Return as many whole scores, from the first, as fit into `width`."""
    text = ""
    for value in scores:
        longer = f"{text} {value:,.0f}".lstrip()
        if len(longer) > width:
            break
        text = longer
    return text


def _grid(*justify: JustifyMethod) -> Table:
    """Return a table without lines. Where room is short, the last column gives way."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for place, side in enumerate(justify, start=1):
        table.add_column(justify=side, no_wrap=place < len(justify))
    return table


def _cropped(text: str) -> Text:
    """Return a cell that is cut where room is short, not wrapped."""
    return Text(text, no_wrap=True, overflow="crop")
