"""Plotly figures as plain data. All text is escaped, because Plotly reads HTML in names and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from atari_dqn.compare.output.palette import line_style
from atari_dqn.dashboard.series import Values

Figure = dict[str, Any]
Trace = dict[str, Any]

_FLAT = 0.001
"""Values whose range is a smaller share of the largest are drawn as a flat line."""

_PUBLISHED_COLOUR = "#666666"
_PUBLISHED_DASHES = ("dash", "dashdot", "dot")

_NOTHING_DRAWN = {
    "text": "no values yet",
    "x": 0.5,
    "y": 0.5,
    "xref": "paper",
    "yref": "paper",
    "showarrow": False,
}
_LEGEND_BELOW = {"orientation": "h", "y": -0.2}
_LEGEND_ABOVE = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 1.0, "xanchor": "right"}


def figure(traces: Sequence[Trace], *, x: str, y: str, title: str = "", small: bool = False) -> Figure:
    """Build a figure of traces with named axes; `small` places the legend next to the title."""
    axis = {"gridcolor": "rgba(128,128,128,.2)", "zerolinecolor": "rgba(128,128,128,.4)"}
    return {
        "data": list(traces),
        "layout": {
            "title": {"text": escape(title), "font": {"size": 15}, "x": 0.01},
            "xaxis": {
                "title": {"text": escape(x), "standoff": 8},
                "rangemode": "tozero",
                "automargin": True,
                **axis,
            },
            "yaxis": {"title": {"text": escape(y)}, **axis, **_widened(traces)},
            "margin": {"l": 60, "r": 16, "t": 36 if title else 12, "b": 48},
            "legend": _LEGEND_ABOVE if small else _LEGEND_BELOW,
            "showlegend": len(traces) > 1 or not small,
            "annotations": [] if any(trace["x"] for trace in traces) else [_NOTHING_DRAWN],
            "hovermode": "x unified",
            "hoverlabel": {"namelength": -1},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": "#667"},
        },
        "config": {"displaylogo": False, "responsive": True},
    }


def _widened(traces: Sequence[Trace]) -> dict[str, Any]:
    """Widen the range of values that hardly differ: the labels of their axis would have too many digits."""
    values = [value for trace in traces for value in trace["y"] if math.isfinite(value)]
    if not values or any(trace["type"] == "bar" for trace in traces):  # bars begin at 0
        return {}
    low, high = min(values), max(values)
    magnitude = max(abs(low), abs(high)) or 1.0
    if high - low > _FLAT * magnitude:
        return {}
    return {"range": [low - magnitude / 10, high + magnitude / 10]}


def line(x: Values, y: Values, *, name: str, index: int = 0) -> Trace:
    """Build a line with the colour and the dashes of `index`."""
    style = line_style(index)
    dashes = ",".join(f"{length}px" for length in style.dashes) or "solid"
    return _scatter(x, y, name=name, colour=style.colour, dashes=dashes)


def published_line(x: Values, y: Values, *, name: str, index: int = 0) -> Trace:
    """Build a line of a published curve: grey, with the dashes of `index`, unlike the lines of runs."""
    dashes = _PUBLISHED_DASHES[index % len(_PUBLISHED_DASHES)]
    return _scatter(x, y, name=name, colour=_PUBLISHED_COLOUR, dashes=dashes)


def _scatter(x: Values, y: Values, *, name: str, colour: str, dashes: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines" if len(x) > 1 else "markers",
        "x": x.tolist(),
        "y": y.tolist(),
        "name": escape(name),
        "line": {"color": colour, "width": 1.6, "dash": dashes},
    }


def shaded(x: Values, low: Values, high: Values, *, index: int = 0) -> Trace:
    """Build the area between two lines."""
    colour = line_style(index).colour
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x.tolist(), *x[::-1].tolist()],
        "y": [*high.tolist(), *low[::-1].tolist()],
        "fill": "toself",
        "fillcolor": f"rgba({red},{green},{blue},.18)",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def bars(names: Mapping[str, str], values: Sequence[float]) -> Trace:
    """Build a bar for each name.

    `names`: the short name that is drawn, by the whole one, which is shown where a cursor is on the bar.
    """
    return {
        "type": "bar",
        "x": [escape(name) for name in names.values()],
        "y": list(values),
        "hovertext": [escape(name) for name in names],
        "hovertemplate": "%{hovertext}: %{y}<extra></extra>",
        "marker": {"color": [line_style(index).colour for index in range(len(names))]},
        "showlegend": False,
    }


def intervals(
    names: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> Trace:
    """Build the intervals around the values of bars; a bar without one is not among the names."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [escape(name) for name in names],
        "y": list(values),
        "marker": {"opacity": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "error_y": {
            "type": "data",
            "color": "#333",
            "symmetric": False,
            "array": [high - value for high, value in zip(highs, values, strict=True)],
            "arrayminus": [value - low for low, value in zip(lows, values, strict=True)],
        },
    }
