"""Sweeps: the runs of each sweep below the root, with totals and what failed, from the files alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from nicegui import ui

from atari_dqn.compare.reference.caps import marked_score
from atari_dqn.dashboard.layout import FAULT, page_layout, sort_keys, sortable_columns
from atari_dqn.dashboard.library import Library
from atari_dqn.formatting import count, duration
from atari_dqn.run.sweep.status import MemberStatus, SweepStatus, Totals
from atari_dqn.run.tailing.isolation import Unreadable

_REFRESH_SECONDS = 5.0
_TITLES = ("run", "state", "host", "frames", "done", "frames/s", "left", "last score", "alerts")
_NUMERIC = ("frames", "done", "frames/s", "left", "last score")


def sweeps_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/sweeps"):
        nothing = ui.label(f"No sweeps below {library.root}. `dqn sweep` makes them.")
        content = ui.column().classes("w-full gap-3")
        cards: dict[str, _Card] = {}

        def refresh() -> None:
            found = library.sweeps()
            nothing.set_visibility(not found)
            if list(found) != list(cards):
                content.clear()
                cards.clear()
                with content:
                    cards.update({name: _Card(name) for name in found})
            for name, sweep in found.items():
                cards[name].show(sweep)

        refresh()
        ui.timer(_REFRESH_SECONDS, refresh)


class _Card:
    """The elements of a sweep, changed by a refresh: new ones would lose the table's page and order."""

    def __init__(self, name: str) -> None:
        with ui.card().classes("w-full sweep gap-2"):
            with ui.row().classes("w-full items-baseline"):
                ui.label(name).classes("text-lg font-bold wrap-anywhere")
                self._states = ui.label()
                ui.space()
                self._left = ui.label()
            self._progress = ui.linear_progress(show_value=False)
            columns = sortable_columns(_TITLES, _NUMERIC)
            self._table = ui.table(columns=columns, rows=[], row_key="run", pagination=20)
            self._table.props("dense flat wrap-cells").classes("w-full")
            self._faults = ui.label().classes(f"{FAULT} whitespace-pre-line")

    def show(self, sweep: SweepStatus | Unreadable) -> None:
        """Show the present state of the sweep, or why it is unreadable."""
        for element in (self._states, self._left, self._progress, self._table):
            element.set_visibility(isinstance(sweep, SweepStatus))
        if isinstance(sweep, Unreadable):
            self._faults.set_text(sweep.reason)
            return
        totals = sweep.totals
        self._states.set_text(", ".join(f"{number} {state}" for state, number in totals.states.items()))
        self._left.set_text(speed_text(totals))
        self._progress.set_value(totals.env_frames / max(1, totals.total_frames))
        self._table.rows = [row_of(each) for each in sweep.members]
        self._faults.set_text("\n".join(_failures(sweep)))


def speed_text(totals: Totals) -> str:
    """Format the speed of a sweep and the time that is left; empty while none of its runs is running."""
    if not totals.states.get("running"):
        return ""
    return f"{count(totals.frames_per_second)} frames/s, {duration(totals.seconds_left)} left"


def _failures(sweep: SweepStatus) -> Iterator[str]:
    for each in sweep.members:
        if each.failure is not None and each.state == each.failure.kind:
            remedy = each.failure.remedy(sweep.folder.path / each.member.name)
            yield f"{each.member.name} {each.state}: {each.failure.reason}; {remedy}"


def row_of(each: MemberStatus) -> dict[str, Any]:
    """Format the status of a run by title."""
    is_running = each.state == "running"
    share = min(1.0, each.env_frames / max(1, each.total_frames))
    alerts = [*each.alerts, *([] if each.belongs else ["not in the sweep file any more"])]
    return {
        "run": each.member.name,
        "state": each.state,
        "host": each.host,
        "frames": f"{each.env_frames:,} of {each.total_frames:,}",
        "done": f"{share:.0%}",
        "frames/s": count(each.frames_per_second) if is_running else "–",
        "left": duration(each.seconds_left) if is_running else "–",
        "last score": marked_score(each.evaluation),
        "alerts": ", ".join(alerts),
        **sort_keys(
            {
                "frames": each.env_frames,
                "done": share,
                "frames/s": each.frames_per_second if is_running else math.nan,
                "left": each.seconds_left if is_running else math.nan,
                "last score": float(each.evaluation.get("mean_return", math.nan)),
            }
        ),
    }
