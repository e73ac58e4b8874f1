"""`dqn watch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.live import Live

from atari_dqn.cli.show import shown
from atari_dqn.errors import UserError
from atari_dqn.run.directory import RunDirectory, is_run
from atari_dqn.run.folders import expand_run_paths
from atari_dqn.run.tailing.identity import identity_of
from atari_dqn.run.tailing.isolation import Unreadable
from atari_dqn.run.tailing.run_events import RunEvents
from atari_dqn.run.tailing.status import RunStatus, TailedRun
from atari_dqn.spec.loader import load_resolved
from atari_dqn.telemetry.events import Event
from atari_dqn.telemetry.writers import Sinks
from atari_dqn.view.standing import standing, standing_text
from atari_dqn.view.summary import name_of, summary_table

_ENDED = {"finished", "halted", "interrupted"}
_SUMMARY_COLUMNS = 100
"""Width of the table where there is no terminal."""


def watch(paths: Sequence[Path], *, every_seconds: float, once: bool, plain: bool) -> None:
    """Show runs from their files until they end or the user has seen enough; several as a table.

    A folder of runs stands for the runs in it.
    """
    run_dirs = expand_run_paths(paths)
    try:
        if len(run_dirs) > 1 or run_dirs != list(paths):
            _watch_several(run_dirs, every_seconds=every_seconds, once=once)
        elif once:
            _show_standing(run_dirs[0])
        else:
            _watch_one(run_dirs[0], every_seconds=every_seconds, plain=plain)
    except KeyboardInterrupt:  # the way to stop watching; the run goes on
        return


def _show_standing(path: Path) -> None:
    """Print how a run is at present."""
    run = _opened(path)
    status = RunStatus(run.path)
    status.refresh()
    Console(soft_wrap=True).print(standing_text(name_of(path), status), highlight=False)


def _opened(path: Path) -> RunDirectory:
    """Open a run once its files are known to be files, and to hold what a run's do."""
    if is_run(path):
        identity_of(path)
    return RunDirectory.open(path)


def _watch_one(path: Path, *, every_seconds: float, plain: bool) -> None:
    run = _opened(path)
    resolved = load_resolved(run.spec)
    again = True
    while again:
        status = RunStatus(path)
        status.refresh()
        views = shown(
            name_of(path), resolved, status.total_frames, plain=plain, standing=partial(standing, status)
        )
        with views as sinks:
            again = _follow(status, RunEvents(path), Sinks(sinks).handle, every_seconds=every_seconds)


def _follow(
    status: RunStatus, events: RunEvents, handle: Callable[[Event], None], *, every_seconds: float
) -> bool:
    """Pass events on until the run ends; return whether its files were cut back, and all begins anew."""
    while True:
        status.refresh()
        found = events.new()
        if found is None:
            return True
        for event in found:
            handle(event)
        if status.state in _ENDED:
            return False
        time.sleep(every_seconds)


def _watch_several(paths: Sequence[Path], *, every_seconds: float, once: bool) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=_SUMMARY_COLUMNS)
    followed = [TailedRun(path) for path in paths]
    runs = _look(followed)
    if all(isinstance(found, Unreadable) for found in runs.values()):
        raise UserError(
            "; ".join(
                f"{name_of(path)}: {found.reason}"
                for path, found in runs.items()
                if isinstance(found, Unreadable)
            )
        )
    if once or not console.is_terminal:
        console.print(summary_table(runs, columns=console.width))
        return
    with Live(
        get_renderable=lambda: summary_table(runs, columns=console.width), console=console, auto_refresh=False
    ) as live:
        live.refresh()
        while any(isinstance(found, RunStatus) and found.state not in _ENDED for found in runs.values()):
            time.sleep(every_seconds)
            runs = _look(followed)
            live.refresh()


def _look(followed: Sequence[TailedRun]) -> dict[Path, RunStatus | Unreadable]:
    return {run.path: run.refresh() for run in followed}
