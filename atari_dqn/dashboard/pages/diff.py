"""Config diff: the keys in which runs differ, and nothing else."""

from __future__ import annotations

from collections import Counter

from nicegui import ui

from atari_dqn.dashboard.layout import by_name, page_layout, run_select
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.formatting import setting

ABSENT = "—"
_FIRST_RUNS = 2


def diff_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/diff") as runs:
        if not runs:
            return
        selected = run_select(runs, num_selected=_FIRST_RUNS)
        selected.set_value([run.name for run in _unlike(runs)])
        content = ui.column().classes("w-full")
        selected.on_value_change(lambda: _show(content, by_name(runs, selected.value)))
        _show(content, by_name(runs, selected.value))


def _unlike(runs: list[RunEntry]) -> list[RunEntry]:
    """Select the latest run and, if there is one, the latest run of another method on the same game."""
    first, *others = runs
    unlike = [run for run in others if run.game == first.game and run.method != first.method]
    return [first, *(unlike or others)[: _FIRST_RUNS - 1]]


def differing(runs: list[RunEntry]) -> dict[str, list[str]]:
    """Collect each differing key with its value in every run, in the order of the first run's spec."""
    keys = list(dict.fromkeys(key for run in runs for key in run.values))
    values = {key: [_shown(run, key) for run in runs] for key in keys}
    return {key: row for key, row in values.items() if len(set(row)) > 1}


def _show(content: ui.column, runs: list[RunEntry]) -> None:
    content.clear()
    rows = differing(runs)
    with content:
        if len(runs) < _FIRST_RUNS:
            ui.label("Choose two runs or more.")
        with ui.grid(columns=f"auto repeat({len(runs)}, 1fr)").classes("w-full gap-x-6 gap-y-1 diff"):
            _head(runs)
            for key, values in rows.items():
                _line(key, values)
        if runs and not rows:
            ui.label("no difference")


def _head(runs: list[RunEntry]) -> None:
    ui.label("key").classes("font-bold")
    for run in runs:
        with ui.column().classes("gap-0"):
            ui.label(run.name).classes("font-bold break-all")
            deviates = f": {', '.join(run.deviations)}" if run.deviations else ""
            ui.label(f"track {run.track_label}{deviates}").classes("text-sm opacity-80")


def _line(key: str, values: list[str]) -> None:
    """Draw a key; mark the values that differ from the most common one, or all if no two are equal."""
    value, times = Counter(values).most_common(1)[0]
    common = value if times > 1 else None
    ui.label(key).classes("font-mono")
    for value in values:
        mark = "" if value == common else "bg-amber-200 text-black rounded px-1 differs"
        ui.label(value).classes(f"font-mono {mark}")


def _shown(run: RunEntry, key: str) -> str:
    value = run.values.get(key)
    return ABSENT if value is None else setting(value)
