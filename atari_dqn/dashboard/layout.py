"""The parts that all pages share: navigation, unreadable runs, fields to select runs, columns of tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from nicegui import ui

from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.formatting import plural
from atari_dqn.run.tailing.isolation import Unreadable, attempt

PAGES = {
    "/": "Runs",
    "/curves": "Curves",
    "/live": "Live",
    "/sweeps": "Sweeps",
    "/videos": "Videos",
    "/games": "Games",
    "/ablations": "Ablations",
    "/diff": "Config diff",
    "/replay": "Replay",
}
FAULT = "text-red-600 dark:text-red-400 text-sm wrap-anywhere unreadable"
_STYLE = """
.body--dark .js-plotly-plot text:not(.hoverlayer *) { fill: #b8bcc4 !important }
.body--dark .js-plotly-plot .yerror { stroke: #d5d9de !important }
"""
"""Plotly has one colour for text, and it cannot be legible on a light and on a dark page."""
_LEAST = -1e300
"""The key by which an entry without a number is sorted; JSON has no infinity."""
DEFAULT_RUNS = 8
"""Number of runs that a page shows at first."""


@contextmanager
def page_layout(library: Library, address: str) -> Iterator[list[RunEntry]]:
    """Draw the navigation, yield the readable runs to the page, and list every run with a fault below it."""
    ui.dark_mode(value=None)
    ui.add_css(_STYLE)
    runs = library.runs()
    readable = [run for run in runs if not run.unreadable]
    with ui.header().classes("items-center bg-slate-800 gap-1 py-2"):
        ui.label("dqn").classes("font-bold text-lg mr-4")
        for target, title in PAGES.items():
            marked = "underline font-bold" if target == address else "no-underline opacity-80"
            link = ui.link(title, target).classes(f"text-white px-2 {marked}")
            if target == address:
                link.props("aria-current=page")
        ui.space()
        ui.label(plural(len(readable), "run")).classes("opacity-70 text-sm")
    with ui.column().classes("w-full max-w-screen-xl mx-auto p-2 gap-3"):
        if readable:
            yield readable
        else:
            absent = "No readable run below {0}." if runs else "No runs below {0}. `dqn train` makes them."
            ui.label(absent.format(library.root)).classes("text-lg")
            yield []
        for run in runs:
            if run.fault:
                kind = "unreadable: " if run.unreadable else ""
                ui.label(f"{kind}{run.name}: {run.fault}").classes(FAULT)


def draw_each(runs: Iterable[RunEntry], draw: Callable[[RunEntry], None]) -> None:
    """Call `draw` for each run; show the name and the reason where a run's files are unreadable."""
    for run in runs:
        found = attempt(partial(draw, run))
        if isinstance(found, Unreadable):
            ui.label(f"{run.name}: {found.reason}").classes(FAULT)


def run_select(runs: list[RunEntry], *, num_selected: int = DEFAULT_RUNS, label: str = "runs") -> ui.select:
    """Create a field to select several runs by name; at first the latest runs of one game."""
    names = [run.name for run in runs]
    first = [run.name for run in runs if run.game == runs[0].game][:num_selected]
    field = ui.select(names, multiple=True, value=first, label=label, with_input=True)
    return field.classes("grow min-w-64").props("use-chips dense")


def one_run(runs: list[RunEntry]) -> ui.select:
    """Create a field to select one run by name."""
    names = [run.name for run in runs]
    return (
        ui.select(names, value=names[0] if names else None, label="run")
        .classes("w-full max-w-96")
        .props("dense")
    )


def by_name(runs: list[RunEntry], names: list[str] | str | None) -> list[RunEntry]:
    """Select the runs with these names, in their order."""
    wanted = [names] if isinstance(names, str) else names or []
    found = {run.name: run for run in runs}
    return [found[name] for name in wanted if name in found]


def sortable_columns(
    titles: Iterable[str], numeric: Collection[str], *, in_one_line: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Create the columns of a table; those of `numeric` are sorted by the entries of `sort_keys`.

    `in_one_line`: the columns whose text is not broken on a wide page.
    """
    columns: list[dict[str, Any]] = [
        {"name": title, "label": title, "field": title, "align": "left", "sortable": True} for title in titles
    ]
    columns[0]["classes"] = "wrap-anywhere min-w-40"  # long names of runs
    for column in columns:
        if column["name"] in in_one_line:
            column["classes"] = column["headerClasses"] = "lg:whitespace-nowrap"
        if column["name"] in numeric:
            key = _sort_key(column["name"])
            column[":sort"] = f"(a, b, rowA, rowB) => rowA['{key}'] - rowB['{key}']"
    return columns


def sort_keys(numbers: dict[str, float]) -> dict[str, float]:
    """Create the entries of a row by which its numeric columns are sorted; NaN is less than any number."""
    return {
        _sort_key(title): _LEAST if math.isnan(number) else max(_LEAST, min(-_LEAST, number))
        for title, number in numbers.items()
    }


def _sort_key(title: str) -> str:
    return f"{title} as a number"
