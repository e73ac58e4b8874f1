"""Plot learning curves as PNG or SVG, with a panel for each game. Requires the extra `plot`."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atari_dqn.compare.comparison import Comparison, GroupResult
from atari_dqn.compare.output.learning_curves import (
    GroupCurve,
    PublishedCurve,
    group_curves,
    published_curves,
)
from atari_dqn.compare.output.palette import LineStyle, line_style
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import write_atomically
from atari_dqn.formatting import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FORMATS = {".png", ".svg"}
_PANEL_INCHES = (6.4, 4.2)
"""Width and height of a panel without its legend."""
_LEGEND_LINE_INCHES = 0.15
_LEGEND_LINE_CHARACTERS = 95
_BELOW_AXES_INCHES = 0.6
"""Distance from the axes to the legend; the labels of the axis and of its values lie between."""
_MAX_COLUMNS = 3
_PUBLISHED_STYLES = ("--", "-.", ":")
_MARKERS = ("s", "s", "o", "^", "v", "D")


def require_plotting(path: Path) -> None:
    """Raise `UserError` if the ending is not .png or .svg, or if matplotlib is missing."""
    if path.suffix.lower() not in _FORMATS:
        raise UserError(f"--plot {path}: found the ending {path.suffix!r}, expected .png or .svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError("--plot needs matplotlib; install it with `pip install 'atari-dqn[plot]'`") from None


def draw(comparison: Comparison, path: Path) -> None:
    """Write the learning curves of a comparison to a .png or .svg file."""
    write_atomically(path, _encoded(figure_of(comparison), path.suffix.lower().removeprefix(".")))


def figure_of(comparison: Comparison) -> Figure:
    """Return the matplotlib figure: a panel for each game, with its legend below it."""
    # Without pyplot the figure needs no display and no global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    games = comparison.games
    columns = min(_MAX_COLUMNS, math.ceil(math.sqrt(len(games))))
    rows = math.ceil(len(games) / columns)
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    legends = [_panel(figure, axes, comparison, game) for game, axes in zip(games, panels, strict=False)]
    below = _LEGEND_LINE_INCHES * max(legends)
    figure.set_size_inches(columns * _PANEL_INCHES[0], rows * (_PANEL_INCHES[1] + below))
    for axes in panels[len(games) :]:
        axes.set_visible(False)
    return figure


def _panel(figure: Figure, axes: Axes, comparison: Comparison, game: str) -> int:
    """Draw the panel of a game, and return the number of lines of its legend."""
    results = comparison.of_game(game)
    for place, curve in enumerate(published_curves(results)):
        _draw_published(axes, curve, _PUBLISHED_STYLES[place % len(_PUBLISHED_STYLES)])
    for place, group in enumerate(group_curves(results)):
        if group.seeds:
            _draw_group(axes, group, line_style(place))
    _draw_columns(axes, results)
    last_frames = max(run.reached_frames for result in results for run in result.group.runs)
    axes.set_xlim(0, max(1, last_frames) * 1.02)
    axes.set_title(game, loc="left", fontweight="bold")
    axes.set_xlabel("emulator frames")
    axes.set_ylabel("return of an evaluation, unclipped")
    axes.xaxis.set_major_formatter(lambda frames, _: count(frames))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return _legend_below(figure, axes)


def _legend_below(figure: Figure, axes: Axes) -> int:
    """Place the legend below the axes, and return its number of lines."""
    from matplotlib.transforms import ScaledTranslation

    handles, labels = axes.get_legend_handles_labels()
    wrapped = [textwrap.fill(label, _LEGEND_LINE_CHARACTERS) for label in labels]
    down = ScaledTranslation(0, -_BELOW_AXES_INCHES, figure.dpi_scale_trans)
    axes.legend(
        handles,
        wrapped,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0,
        fontsize="x-small",
        frameon=False,
    )
    return sum(len(label.splitlines()) for label in wrapped)


def _draw_group(axes: Axes, curve: GroupCurve, style: LineStyle) -> None:
    for frames, values in curve.seeds.values():
        axes.plot(frames, values, color=style.colour, alpha=0.35, linewidth=0.8)
    axes.fill_between(curve.frames, curve.low, curve.high, color=style.colour, alpha=0.2, linewidth=0)
    marker = "o" if len(curve.frames) == 1 else ""
    (mean,) = axes.plot(
        curve.frames, curve.mean, color=style.colour, linewidth=2, marker=marker, label=_literal(curve.label)
    )
    if style.dashes:
        mean.set_dashes([length / 2 for length in style.dashes])  # in units of the line's width


def _draw_published(axes: Axes, curve: PublishedCurve, style: str) -> None:
    axes.fill_between(curve.frames, curve.low, curve.high, color="0.5", alpha=0.15, linewidth=0)
    axes.plot(
        curve.frames, curve.mean, color="0.35", linestyle=style, linewidth=1.2, label=_literal(curve.label)
    )


def _draw_columns(axes: Axes, results: Sequence[GroupResult]) -> None:
    """Draw a marker for each published Atari 100k score at its budget; recalled scores are hollow."""
    columns = {each.column: each.figure for result in results for each in result.atari100k}
    for place, (column, figure) in enumerate(columns.items()):
        filled = "none" if column.sourced == "recalled" else "0.35"
        axes.plot(
            [figure.env_frames],
            [figure.mean],
            _MARKERS[place % len(_MARKERS)],
            color="0.35",
            markerfacecolor=filled,
            label=_literal(f"{column.title} ({column.sourced})"),
        )


def _literal(label: str) -> str:
    """Return a label that matplotlib shows as it is: not as mathematics, nor hidden by an underscore."""
    shown = label.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _encoded(figure: Figure, kind: str) -> bytes:
    """Encode a figure reproducibly: the same figure yields the same bytes."""
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "atari_dqn"}):
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
    return buffer.getvalue()
