"""Plot a tune as PNG: the score of each trial in turn, the scores over each key, the importance of keys."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from atari_dqn.compare.output.palette import COLOURS
from atari_dqn.scale.tuning.ranking import Standing
from atari_dqn.scale.tuning.space import Dimension
from atari_dqn.scale.tuning.study import IMPORTANCE, Trial
from atari_dqn.scale.tuning.table import leaf, objective_line, value_text
from atari_dqn.spec.keys import Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL_INCHES = (4.2, 3.1)
_COLUMNS = 3
_TITLE_CHARACTERS = 55  # of a panel
_MARGIN, _LOG_MARGIN = 0.05, 1.2
"""How far an axis goes beyond the range of a key: a share of the range, or a factor."""
_TRIAL, _BEST, _PRUNED = COLOURS[0], COLOURS[1], "0.55"


def encoded_plot(standing: Standing, importance: Mapping[str, float]) -> bytes:
    """Return the plot as PNG; the same tune gives the same bytes."""
    buffer = io.BytesIO()
    figure_of(standing, importance).savefig(buffer, format="png", dpi=120, metadata={"Software": None})
    return buffer.getvalue()


def figure_of(standing: Standing, importance: Mapping[str, float]) -> Figure:
    """Return the matplotlib figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    space = standing.record.tune.space
    panels = 1 + len(space) + bool(importance)
    columns = min(_COLUMNS, panels)
    rows = math.ceil(panels / columns)
    figure = Figure(layout="constrained", figsize=(columns * _PANEL_INCHES[0], rows * _PANEL_INCHES[1] + 0.6))
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(rows, columns, squeeze=False).flatten())
    _draw_history(axes[0], standing)
    for place, dimension in enumerate(space, start=1):
        _draw_key(axes[place], standing, dimension)
    if importance:
        _draw_importance(axes[1 + len(space)], importance)
    for each in axes[panels:]:
        each.set_visible(False)
    for each in axes[:panels]:
        each.spines[["top", "right"]].set_visible(False)
    title = textwrap.fill(
        f"{standing.record.tune.name}: {objective_line(standing)}", columns * _TITLE_CHARACTERS
    )
    figure.suptitle(title, fontsize="small", x=0.01, ha="left")
    return figure


def _draw_history(axes: Axes, standing: Standing) -> None:
    """Draw the score of each trial in turn, and the best so far."""
    complete = [trial for trial in standing.trials if trial.state == "complete"]
    numbers = [trial.number for trial in complete]
    best = max if standing.record.tune.objective.direction == "maximize" else min
    so_far = [best(trial.value for trial in complete[: place + 1]) for place in range(len(complete))]
    axes.plot(numbers, [trial.value for trial in complete], "o", color=_TRIAL, label="complete", zorder=3)
    axes.step(numbers, so_far, where="post", color=_BEST, label="best so far")
    pruned = [trial for trial in standing.trials if trial.state == "pruned"]
    values = [trial.steps[max(trial.steps)] for trial in pruned]
    if pruned:
        axes.plot([trial.number for trial in pruned], values, "x", color=_PRUNED, label="pruned")
    _mark_integers(axes)
    axes.set_title("trials", loc="left", fontweight="bold")
    axes.set_xlabel("trial")
    axes.set_ylabel(standing.record.tune.objective.score)
    axes.grid(alpha=0.25)
    axes.legend(
        fontsize="x-small", frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), handlelength=1
    )


def _draw_key(axes: Axes, standing: Standing, dimension: Dimension) -> None:
    """Draw the scores of complete trials over the values of a key; the best trial is marked."""
    keys = standing.record.tune.keys
    with_key = [trial for trial in standing.ranked if dimension.key in trial.settings]
    values = [trial.settings[dimension.key] for trial in with_key]
    axes.plot(_places(dimension, values), _scores(with_key), "o", color=_TRIAL, alpha=0.7)
    axes.plot(_places(dimension, values[:1]), _scores(with_key[:1]), "o", color=_BEST, label="best")
    if dimension.choices:
        axes.set_xticks(range(len(dimension.choices)), [value_text(each) for each in dimension.choices])
        axes.set_xlim(-0.5, len(dimension.choices) - 0.5)
    elif dimension.kind == "log":
        axes.set_xscale("log")
        axes.set_xlim(dimension.low / _LOG_MARGIN, dimension.high * _LOG_MARGIN)
    else:
        margin = _MARGIN * (dimension.high - dimension.low)
        axes.set_xlim(dimension.low - margin, dimension.high + margin)
        if dimension.is_integer:
            _mark_integers(axes)
    axes.set_title(leaf(dimension.key, keys), loc="left", fontweight="bold")
    axes.set_xlabel(dimension.key)
    axes.set_ylabel(standing.record.tune.objective.score)
    axes.grid(alpha=0.25)


def _mark_integers(axes: Axes) -> None:
    """Put the labels of the lower axis at integers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _places(dimension: Dimension, values: list[Scalar]) -> list[float]:
    """Return the places of values on the axis: a choice has the place of its index."""
    if dimension.choices:
        return [float(dimension.choices.index(value)) for value in values]
    return [float(value) for value in values]


def _scores(trials: list[Trial]) -> list[float]:
    return [trial.value for trial in trials]


def _draw_importance(axes: Axes, importance: Mapping[str, float]) -> None:
    keys = list(importance)
    names = [leaf(key, keys) for key in reversed(keys)]
    axes.barh(names, [importance[key] for key in reversed(keys)], color=_TRIAL)
    axes.set_xlim(0, 1)
    axes.set_title("importance", loc="left", fontweight="bold")
    axes.set_xlabel(textwrap.fill(f"share, {IMPORTANCE}", 45))
