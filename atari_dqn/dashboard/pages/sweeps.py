"""Sweeps: the runs of each sweep below the root, with totals and what failed, from the files alone."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from atari_dqn.compare.reference.caps import marked_score
from atari_dqn.dashboard.layout import page_layout
from atari_dqn.dashboard.library import Library
from atari_dqn.formatting import count, duration
from atari_dqn.run.sweep.status import MemberStatus, SweepStatus
from atari_dqn.run.tailing.isolation import Unreadable

_REFRESH_SECONDS = 5.0
_TITLES = ("run", "state", "host", "frames", "done", "frames/s", "left", "last score", "alerts")
_FAULT = "text-red-600 text-sm break-all"


def sweeps_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/sweeps"):

        @ui.refreshable
        def cards() -> None:
            found = library.sweeps()
            if not found:
                ui.label(f"No sweeps below {library.root}. `dqn sweep` makes them.")
            for name, sweep in found.items():
                _card(name, sweep)

        cards()
        ui.timer(_REFRESH_SECONDS, cards.refresh)


def _card(name: str, sweep: SweepStatus | Unreadable) -> None:
    with ui.card().classes("w-full sweep gap-2"):
        if isinstance(sweep, Unreadable):
            ui.label(f"{name}: {sweep.reason}").classes(_FAULT)
            return
        totals = sweep.totals
        with ui.row().classes("w-full items-baseline"):
            ui.label(name).classes("text-lg font-bold")
            ui.label(", ".join(f"{number} {state}" for state, number in totals.states.items()))
            ui.space()
            ui.label(f"{count(totals.frames_per_second)} frames/s, {duration(totals.seconds_left)} left")
        ui.linear_progress(totals.env_frames / max(1, totals.total_frames), show_value=False)
        columns = [
            {"name": title, "label": title, "field": title, "align": "left", "sortable": True}
            for title in _TITLES
        ]
        rows = [row_of(each) for each in sweep.members]
        table = ui.table(columns=columns, rows=rows, row_key="run", pagination=20)
        table.props("dense flat wrap-cells").classes("w-full")
        for each in sweep.members:
            if each.failure is not None and each.state == each.failure.kind:
                remedy = each.failure.remedy(sweep.folder.path / each.member.name)
                ui.label(f"{each.member.name} {each.state}: {each.failure.reason}; {remedy}").classes(_FAULT)


def row_of(each: MemberStatus) -> dict[str, Any]:
    """Format the status of a run by title."""
    is_running = each.state == "running"
    alerts = [*each.alerts, *([] if each.belongs else ["not in the sweep file any more"])]
    return {
        "run": each.member.name,
        "state": each.state,
        "host": each.host,
        "frames": f"{each.env_frames:,} of {each.total_frames:,}",
        "done": f"{min(1.0, each.env_frames / max(1, each.total_frames)):.0%}",
        "frames/s": count(each.frames_per_second) if is_running else "–",
        "left": duration(each.seconds_left) if is_running else "–",
        "last score": marked_score(each.evaluation),
        "alerts": ", ".join(alerts),
    }
