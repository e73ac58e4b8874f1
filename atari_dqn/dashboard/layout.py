"""The parts that all pages share: navigation, unreadable runs, fields to select runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from nicegui import ui

from atari_dqn.dashboard.library import Library, RunEntry
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
_FAULT = "text-red-600 text-sm break-all unreadable"
DEFAULT_RUNS = 8
"""Number of runs that a page shows at first."""


@contextmanager
def page_layout(library: Library, address: str) -> Iterator[list[RunEntry]]:
    """Draw the head of a page, yield the readable runs, and list the unreadable ones at its end."""
    ui.dark_mode(value=None)
    runs = library.runs()
    readable = [run for run in runs if not run.unreadable]
    with ui.header().classes("items-center bg-slate-800 gap-1 py-2"):
        ui.label("dqn").classes("font-bold text-lg mr-4")
        for target, title in PAGES.items():
            marked = "underline font-bold" if target == address else "no-underline opacity-80"
            ui.link(title, target).classes(f"text-white px-2 {marked}")
        ui.space()
        ui.label(f"{len(readable)} runs").classes("opacity-70 text-sm")
    with ui.column().classes("w-full max-w-screen-xl mx-auto p-2 gap-3"):
        if readable:
            yield readable
        else:
            ui.label(f"No runs below {library.root}. `dqn train` makes them.").classes("text-lg")
            yield []
        for run in runs:
            if run.fault:
                kind = "unreadable: " if run.unreadable else ""
                ui.label(f"{kind}{run.name}: {run.fault}").classes(_FAULT)


def draw_each(runs: Iterable[RunEntry], draw: Callable[[RunEntry], None]) -> None:
    """Call `draw` for each run; show the name and the reason where a run's files are unreadable."""
    for run in runs:
        found = attempt(partial(draw, run))
        if isinstance(found, Unreadable):
            ui.label(f"{run.name}: {found.reason}").classes(_FAULT)


def run_select(runs: list[RunEntry], *, num_selected: int = DEFAULT_RUNS, label: str = "runs") -> ui.select:
    """Create a field to select several runs by name; at first the latest runs of one game."""
    names = [run.name for run in runs]
    first = [run.name for run in runs if run.game == runs[0].game][:num_selected]
    field = ui.select(names, multiple=True, value=first, label=label, with_input=True)
    return field.classes("grow min-w-64").props("use-chips dense")


def one_run(runs: list[RunEntry]) -> ui.select:
    """Create a field to select one run by name."""
    names = [run.name for run in runs]
    return ui.select(names, value=names[0] if names else None, label="run").classes("min-w-96").props("dense")


def by_name(runs: list[RunEntry], names: list[str] | str | None) -> list[RunEntry]:
    """Select the runs with these names, in their order."""
    wanted = [names] if isinstance(names, str) else names or []
    found = {run.name: run for run in runs}
    return [found[name] for name in wanted if name in found]
