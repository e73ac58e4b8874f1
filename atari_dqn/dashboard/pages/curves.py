"""Training curves: any metric of any runs, by frames, steps or hours; seeds as lines or as a band."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from nicegui import ui

from atari_dqn.dashboard.figures import Figure, Trace, figure, line, shaded
from atari_dqn.dashboard.layout import FAULT, by_name, page_layout, run_select
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.dashboard.series import Axis, Values, band, series, smoothed, thinned
from atari_dqn.run.tailing.isolation import Unreadable, attempt
from atari_dqn.telemetry.columns import TABLES

_AXES: dict[Axis, str] = {"frames": "emulator frames", "steps": "agent steps", "hours": "hours"}
_LEFT_OUT = {"step", "env_frames", "environment", "lane"}
METRICS = {
    f"{table.removesuffix('_log')} · {column.name}": (table, column.name, column.unit)
    for table in (
        "update_log",
        "train_log",
        "eval_log",
        "throughput_log",
        "replay_log",
        "prediction_log",
        "memory_log",
    )
    for column in TABLES[table]
    if column.name not in _LEFT_OUT and not column.is_text
}
_FIRST = "update · rolling_return"
_TRAINING_RETURNS = {("update_log", "rolling_return"), ("train_log", "episode_return")}


def curves_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/curves") as runs:
        if not runs:
            return
        with ui.row().classes("w-full items-center gap-4"):
            selected = run_select(runs)
            metric = ui.select(list(METRICS), value=_FIRST, label="metric").classes("w-64").props("dense")
            axis = ui.toggle(list(_AXES), value="frames").props("dense no-caps")
            seeds = ui.checkbox("seeds as bands")
        with ui.row().classes("w-full items-center gap-4"):
            ui.label("smoothing").classes("text-sm")
            window = (
                ui.slider(min=1, max=100, value=1)
                .props("label aria-label=smoothing")
                .classes("w-64 smoothing")
            )
        plot = ui.plotly({}).classes("w-full h-[32rem]")
        faults = ui.column().classes("gap-0")

        def redraw() -> None:
            picked = by_name(runs, selected.value)
            drawn, unread = curves_figure(
                picked, metric.value, axis.value, int(window.value), in_bands=seeds.value
            )
            plot.update_figure(drawn)
            faults.clear()
            with faults:
                for reason in unread:
                    ui.label(reason).classes(FAULT)

        redraw()
        for field in (selected, metric, axis, seeds):
            field.on_value_change(redraw)
        window.on("change", redraw)


def curves_figure(
    runs: list[RunEntry], metric: str, axis: Axis, window: int, *, in_bands: bool
) -> tuple[Figure, list[str]]:
    """Draw a metric of runs; return the figure, and why runs are not in it."""
    table, column, unit = METRICS[metric]
    lines, unread = {}, []
    for run in runs:
        found = attempt(partial(series, run, table, column, axis))
        if isinstance(found, Unreadable):
            unread.append(f"{run.name}: {found.reason}")
        elif len(found[0]):
            lines[_name(run, table, column)] = (run, (found[0], smoothed(found[1], window)))
    traces = _bands(lines) if in_bands else _lines(lines)
    drawn = figure(traces, x=_AXES[axis], y=f"{column} ({unit})")
    if unread:
        drawn["layout"]["annotations"] = []  # not "no values yet": the reason is given
    return drawn, unread


def _name(run: RunEntry, table: str, column: str) -> str:
    """Return the name of a run's line, with a mark if it shows returns of environments with different ε."""
    mix = run.status.identity.mixed_epsilon if run.status else ""
    return f"{run.name} (no score: {mix})" if mix and (table, column) in _TRAINING_RETURNS else run.name


Lines = dict[str, tuple[RunEntry, tuple[Values, Values]]]


def _lines(lines: Lines) -> list[Trace]:
    return [
        line(*thinned(*data), name=name, index=index) for index, (name, (_, data)) in enumerate(lines.items())
    ]


def _bands(lines: Lines) -> list[Trace]:
    """Draw a mean with its range for each group of seeds."""
    groups: dict[object, list[tuple[str, tuple[Values, Values]]]] = defaultdict(list)
    for name, (run, data) in lines.items():
        groups[run.method].append((name, data))
    traces: list[Trace] = []
    for index, members in enumerate(groups.values()):
        x, mean, low, high = band([data for _, data in members])
        first = members[0][0]
        name = f"{first} and seeds, n = {len(members)}" if len(members) > 1 else first
        traces += [shaded(x, low, high, index=index), line(x, mean, name=name, index=index)]
    return traces
