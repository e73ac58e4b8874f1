"""The first page: all runs in one table."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from atari_dqn.compare.reference.caps import MARK, marked_score
from atari_dqn.dashboard.layout import page_layout
from atari_dqn.dashboard.library import Library, RunEntry, toggles_on
from atari_dqn.formatting import duration, fingerprint
from atari_dqn.run.tailing.status import RunStatus

_REFRESH_SECONDS = 10.0
_NOTHING = "–"
_TITLES = ("run", "state", "game", "method", "track", "frames", "last score", "protocol", "written")
_NUMBERS = {"frames": "frames_number", "last score": "score_number", "written": "age_number"}
"""Column → the field that it is sorted by."""


def overview_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/"):
        runs = library.runs()
        if not runs:
            return
        rows = [row_of(run) for run in runs]
        table = ui.table(columns=[_column(title) for title in _TITLES], rows=rows, row_key="run")
        table.props("dense flat wrap-cells").classes("w-full overview")
        ui.label(f"{MARK}: the frame cap cut games.").classes("text-sm opacity-70")

        def refresh() -> None:
            table.rows = [row_of(run) for run in library.runs()]

        ui.timer(_REFRESH_SECONDS, refresh)


def row_of(run: RunEntry) -> dict[str, Any]:
    """Format a run's entries by title, with the numbers that they are sorted by."""
    row: dict[str, Any] = dict.fromkeys(_TITLES, _NOTHING) | dict.fromkeys(_NUMBERS.values(), -1.0)
    row["run"] = run.name
    if run.status is None:
        return row | {"state": "unreadable"}
    row |= {
        "game": run.game,
        "method": ", ".join(toggles_on(run.values)) or "plain DQN",
        "track": run.track_label,
    }
    return row | _progress(run.status) | _scored(run.status)


def _progress(status: RunStatus) -> dict[str, Any]:
    alert = " ▲" if status.alerts else ""
    return {
        "state": status.state + alert,
        "frames": f"{status.env_frames:,} of {status.total_frames:,}",
        "frames_number": status.env_frames,
        "written": f"{duration(status.silent_seconds)} ago",
        "age_number": min(status.silent_seconds, 1e12),
    }


def _scored(status: RunStatus) -> dict[str, Any]:
    evaluation = status.latest.get("eval_log")
    if evaluation is None:
        return {}
    mean, episodes = float(evaluation["mean_return"]), evaluation["episodes"]
    return {
        "last score": f"{marked_score(evaluation)} ({evaluation['eval_type']}, {episodes} episodes)",
        "score_number": mean if abs(mean) < 1e300 else -1.0,
        "protocol": fingerprint(str(evaluation["protocol"])),
    }


def _column(title: str) -> dict[str, Any]:
    column: dict[str, Any] = {
        "name": title, "label": title, "field": title, "align": "left", "sortable": True,
    }  # fmt: skip
    if title in _NUMBERS:
        column[":sort"] = f"(a, b, rowA, rowB) => rowA.{_NUMBERS[title]} - rowB.{_NUMBERS[title]}"
    return column
