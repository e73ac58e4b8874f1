"""The first page: all runs in one table."""

from __future__ import annotations

import math
from typing import Any

from nicegui import ui

from atari_dqn.compare.reference.caps import MARK, marked_score
from atari_dqn.dashboard.layout import page_layout, sort_keys, sortable_columns
from atari_dqn.dashboard.library import Library, RunEntry, toggles_on
from atari_dqn.formatting import count, duration, fingerprint, plural
from atari_dqn.run.tailing.shown_progress import shown_progress
from atari_dqn.run.tailing.status import RunStatus

_REFRESH_SECONDS = 10.0
_NOTHING = "–"
_TITLES = ("run", "state", "game", "toggles", "track", "frames", "last score", "protocol", "written")
_NUMERIC = ("frames", "last score", "written")
_IN_ONE_LINE = ("track", "frames", "last score", "protocol", "written")


def overview_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/"):
        runs = library.runs()
        if not runs:
            return
        rows = [row_of(run) for run in runs]
        columns = sortable_columns(_TITLES, _NUMERIC, in_one_line=_IN_ONE_LINE)
        table = ui.table(columns=columns, rows=rows, row_key="run")
        table.props("dense flat wrap-cells").classes("w-full overview")
        ui.label(
            f"A track with *: the spec deviates from the track; Config diff says in which keys. "
            f"{MARK}: the frame cap cut games."
        ).classes("text-sm opacity-70")

        def refresh() -> None:
            table.rows = [row_of(run) for run in library.runs()]

        ui.timer(_REFRESH_SECONDS, refresh)


def row_of(run: RunEntry) -> dict[str, Any]:
    """Format a run's entries by title, with the numbers that they are sorted by."""
    row: dict[str, Any] = dict.fromkeys(_TITLES, _NOTHING) | sort_keys(dict.fromkeys(_NUMERIC, math.nan))
    row["run"] = run.name
    if run.status is None:
        return row | {"state": "unreadable"}
    row |= {
        "game": run.game,
        "toggles": ", ".join(toggles_on(run.values)) or "none",
        "track": run.track_label,
    }
    return row | _progress(run.status) | _scored(run.status)


def _progress(status: RunStatus) -> dict[str, Any]:
    alert, progress = " ▲" if status.alerts else "", shown_progress(status)
    return {
        "state": status.state + alert,
        "frames": f"{count(progress.frames)} of {count(progress.shown_budget)}",
        "written": f"{duration(status.silent_seconds)} ago",
        **sort_keys({"frames": progress.frames, "written": status.silent_seconds}),
    }


def _scored(status: RunStatus) -> dict[str, Any]:
    evaluation = status.latest.get("eval_log")
    if evaluation is None:
        return {}
    episodes = plural(int(evaluation["episodes"]), "episode")
    return {
        "last score": f"{marked_score(evaluation)} ({evaluation['eval_type']}, {episodes})",
        "protocol": fingerprint(str(evaluation["protocol"])),
        **sort_keys({"last score": float(evaluation["mean_return"])}),
    }
