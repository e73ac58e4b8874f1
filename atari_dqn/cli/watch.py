"""`dqn watch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from atari_dqn.cli.show import shown
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.following.events import RunEvents
from atari_dqn.following.status import RunStatus
from atari_dqn.metrics.events import Event
from atari_dqn.metrics.sinks import Sinks
from atari_dqn.run import RunDirectory
from atari_dqn.spec.loader import load_resolved
from atari_dqn.view.summary import name_of, summary_table

_ENDED = {"finished", "halted", "interrupted"}
_SUMMARY_COLUMNS = 100
"""Width of the table where there is no terminal."""


def watch(run_dirs: Sequence[Path], *, every_seconds: float, once: bool, plain: bool) -> None:
    """Show runs from their files until they end or the user has seen enough; several as a table."""
    try:
        if len(run_dirs) == 1:
            _watch_one(run_dirs[0], every_seconds=every_seconds, once=once, plain=plain)
        else:
            _watch_several(run_dirs, every_seconds=every_seconds, once=once)
    except KeyboardInterrupt:  # the way to stop watching; the run goes on
        return


def _watch_one(path: Path, *, every_seconds: float, once: bool, plain: bool) -> None:
    run = RunDirectory.open(path)
    resolved = load_resolved(run.spec)
    again = True
    while again:
        status = RunStatus(path)
        status.look()
        with shown(name_of(path), resolved, status.total_frames, plain=plain) as views:
            again = _follow(
                status,
                RunEvents(path),
                Sinks(views).handle,
                every_seconds=every_seconds,
                once=once,
            )


def _follow(
    status: RunStatus,
    events: RunEvents,
    handle: Callable[[Event], None],
    *,
    every_seconds: float,
    once: bool,
) -> bool:
    """Pass events on until the run ends; return whether its files were cut back, and all begins anew."""
    while True:
        status.look()
        found = events.new()
        if found is None:
            return True
        for event in found:
            handle(event)
        if once or status.state in _ENDED:
            return False
        time.sleep(every_seconds)


def _watch_several(paths: Sequence[Path], *, every_seconds: float, once: bool) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=_SUMMARY_COLUMNS)
    runs: dict[Path, RunStatus | str] = {path: _status(path) for path in dict.fromkeys(paths)}
    if all(isinstance(status, str) for status in runs.values()):
        raise UserError("; ".join(str(status) for status in runs.values()))
    _look(runs)
    if once or not console.is_terminal:
        console.print(summary_table(runs))
        return
    with Live(get_renderable=lambda: summary_table(runs), console=console, auto_refresh=False) as live:
        live.refresh()
        while any(isinstance(status, RunStatus) and status.state not in _ENDED for status in runs.values()):
            time.sleep(every_seconds)
            _look(runs)
            live.refresh()


def _status(path: Path) -> RunStatus | str:
    """Return a run's status, or why it cannot be read."""
    try:
        return RunStatus(path)
    except (UserError, DamagedError) as error:
        return str(error)


def _look(runs: dict[Path, RunStatus | str]) -> None:
    for status in runs.values():
        if isinstance(status, RunStatus):
            status.look()
