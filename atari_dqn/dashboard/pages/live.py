"""Live: the runs in progress, read from their files every few seconds."""

from __future__ import annotations

import math
import time

from nicegui import ui

from atari_dqn.compare.reference.caps import marked_score
from atari_dqn.dashboard.layout import draw_each, page_layout
from atari_dqn.dashboard.library import Library, RunEntry
from atari_dqn.formatting import count, duration, measure, plural, score
from atari_dqn.run.tailing.shown_progress import shown_progress
from atari_dqn.run.tailing.status import IMPORTED, SILENT_SECONDS, RunStatus
from atari_dqn.telemetry.events import GATES, GateChanged

_REFRESH_SECONDS = 3.0
_SHOWN_EVENTS = 8
_SHOWN_RUNS = 6
PARTS = ("learn", "optimize", "sample", "transfer", "act", "emulate", "store", "other")
"""The parts of the training time; their shares add up to 1."""
_COLOURS = {"ok": "green", "watching": "cyan", "warned": "orange", "tripped": "red"}


def live_page(library: Library) -> None:
    """Draw the page."""
    with page_layout(library, "/live") as runs:
        if not runs:
            return

        @ui.refreshable
        def cards() -> None:
            runs = library.readable()
            live = in_progress(runs)
            if not live:
                ui.label("No run has written anything in the last ten minutes; the latest ones:")
            draw_each((live or runs)[:_SHOWN_RUNS], _card)
            if len(live) > _SHOWN_RUNS:
                ui.label(f"and {plural(len(live) - _SHOWN_RUNS, 'run')} more, in the overview")

        cards()
        ui.timer(_REFRESH_SECONDS, cards.refresh)


def in_progress(runs: list[RunEntry]) -> list[RunEntry]:
    """Select the runs that a process runs, or that wrote something in the last ten minutes.

    A long evaluation writes nothing that is looked at here. An import is no training.
    """
    return [run for run in runs if _is_in_progress(run)]


def _is_in_progress(run: RunEntry) -> bool:
    state = "" if run.status is None else run.status.state
    is_recent = time.time() - run.written < SILENT_SECONDS and state != IMPORTED
    return state == "running" or is_recent


def _card(run: RunEntry) -> None:
    """Draw the present state of a run; `DamagedError` if its files are damaged."""
    assert run.status is not None, "only readable runs are drawn"
    status = run.status
    status.refresh()
    with ui.card().classes("w-full live-run gap-2"):
        with ui.row().classes("w-full items-baseline"):
            ui.label(run.name).classes("text-lg font-bold wrap-anywhere")
            ui.label(f"track {run.track_label} · seed {run.seed} · {run.game}").classes("opacity-70")
            ui.space()
            age = duration(status.silent_seconds)
            ui.label(f"written {age} ago").classes("opacity-70 text-sm")
            ui.badge(status.state).props(f"color={'green' if status.state == 'running' else 'grey'}")
        ui.linear_progress(shown_progress(status).share, show_value=False)
        ui.label(progress_text(status)).classes("progress-line")
        ui.label(measured_text(status))
        _throughput(status)
        with ui.row().classes("gap-1"):
            for gate in GATES:
                state = status.gates.get(gate, "ok")
                ui.badge(f"{gate}: {state}").props(f"color={_COLOURS.get(state, 'grey')} outline")
        with ui.column().classes("gap-0"):
            for event in status.notices[: -_SHOWN_EVENTS - 1 : -1]:
                kind = f"gate {event.gate} {event.state}" if isinstance(event, GateChanged) else event.kind
                ui.label(f"{count(event.env_frames)}  {kind}: {event.message}").classes("text-sm font-mono")


def progress_text(status: RunStatus) -> str:
    """Format the frames so far, the speed and what is left."""
    rate = status.frames_per_second
    speed = "" if math.isnan(rate) else f", {rate:,.0f} frames/s"
    return f"{shown_progress(status).text(unit=' frames')}{speed}{_left(status)}"


def _left(status: RunStatus) -> str:
    """Say how long a running run has to train; after its last frame, that its final evaluation is left."""
    if status.state != "running":
        return ""
    if shown_progress(status).share == 1.0:
        return ", then the final evaluation"
    return "" if math.isnan(status.seconds_left) else f", {duration(status.seconds_left)} left"


def measured_text(status: RunStatus) -> str:
    """Format the latest figures of the training, the last score and the best one."""
    row = status.latest.get("update_log", {})

    def number(name: str) -> float:
        return float(row.get(name, math.nan))

    mix = status.identity.mixed_epsilon
    mixed = f" (no score: of environments with {mix})" if mix else ""
    return (
        f"rolling return {score(number('rolling_return'))}{mixed} · loss {measure(number('loss'))} · "
        f"Q {measure(number('mean_q'))} · gradient norm {measure(number('grad_norm'))} · "
        f"{'mean ' if mix else ''}ε {measure(number('epsilon'))} · last evaluation "
        f"{marked_score(status.latest.get('eval_log', {}))} · best {marked_score(status.best_evaluation)}"
    )


def _throughput(status: RunStatus) -> None:
    """Draw the share of each part in the time of the latest period."""
    row = status.latest.get("throughput_log", {})
    with ui.row().classes("w-full gap-4 text-sm"):
        for part in PARTS:
            share = float(row.get(f"{part}_share", math.nan))
            ui.label(f"{part} {'-' if math.isnan(share) else f'{share:.0%}'}")
