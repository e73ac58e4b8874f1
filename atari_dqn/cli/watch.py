"""`dqn watch`."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import number
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from atari_dqn.run.directory import RunDirectory
    from atari_dqn.run.tailing.ending import EndDetector
    from atari_dqn.run.tailing.isolation import Unreadable
    from atari_dqn.run.tailing.run_events import RunEvents
    from atari_dqn.run.tailing.status import RunStatus, TailedRun
    from atari_dqn.telemetry.events import Event

EXAMPLES = """\
dqn watch outputs/pong_quick_seed1
dqn watch outputs/* --once"""

_SHORTEST_SECONDS = 0.1
_SUMMARY_COLUMNS = 100
"""Width of the table where there is no terminal."""


def watch(
    run_dirs: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR...", help="Runs, folders of runs, or a sweep.")
    ],
    every: Annotated[str, typer.Option(metavar="SECONDS", help="Time between updates.")] = "2",
    once: Annotated[bool, typer.Option("--once", help="Print the present state and exit.")] = False,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain",
            help="Print one line per period instead of the live view; of several runs, their table once.",
        ),
    ] = False,
) -> None:
    """Show the progress of a run from its files; several runs, or a sweep, as a table."""
    period_seconds = number("--every", every, low=_SHORTEST_SECONDS)
    with interrupts_blocked():
        import rich.live  # noqa: F401 - not to be interrupted while it is imported

        import atari_dqn.view.run_views  # noqa: F401
        from atari_dqn.run.folders import expand_run_paths
        from atari_dqn.run.sweep.folder import is_sweep

    paths = expand_run_paths(run_dirs)
    try:
        if len(run_dirs) == 1 and is_sweep(run_dirs[0]):
            _watch_sweep(run_dirs[0], period_seconds, once=once, plain=plain)
        elif len(paths) > 1 or paths != run_dirs:
            _watch_several(paths, period_seconds, once=once or plain)
        elif once:
            _print_status(paths[0])
        else:
            _watch_one(paths[0], period_seconds, plain=plain)
    except KeyboardInterrupt:  # ends the watching; the run continues
        return


def _print_status(path: Path) -> None:
    from rich.console import Console

    from atari_dqn.run.tailing.status import RunStatus
    from atari_dqn.view.run_state import status_text
    from atari_dqn.view.summary import name_of

    run = _open(path)
    status = RunStatus(run.path)
    status.refresh()
    console = Console(soft_wrap=True)
    columns = console.width if console.is_terminal else None
    console.print(status_text(name_of(path), status, columns), highlight=False)


def _open(path: Path) -> RunDirectory:
    """Open a run; `DamagedError` if one of its files is not a regular file with the expected contents."""
    from atari_dqn.run.directory import RunDirectory, is_run
    from atari_dqn.run.tailing.identity import identity_of

    if is_run(path):
        identity_of(path)
    return RunDirectory.open(path)


def _watch_one(path: Path, period_seconds: float, *, plain: bool) -> None:
    """Show a run until it ends; start again when its files become shorter, as after a resume."""
    from atari_dqn.run.tailing.ending import ENDED_WITHOUT_EVENT, EndDetector
    from atari_dqn.run.tailing.run_events import RunEvents
    from atari_dqn.run.tailing.status import RunStatus
    from atari_dqn.spec.loader import load_resolved
    from atari_dqn.telemetry.writers import Sinks
    from atari_dqn.view.run_state import state_text
    from atari_dqn.view.run_views import run_views
    from atari_dqn.view.summary import name_of

    run = _open(path)
    resolved = load_resolved(run.spec, run.read_provenance())
    again, end = True, EndDetector(now=time.monotonic)
    while again:
        status = RunStatus(path)
        status.refresh()
        show_state = partial(state_text, status)
        views = run_views(name_of(path), resolved, status.total_frames, plain=plain, state_text=show_state)
        with views as sinks:
            again = _pass_events(status, RunEvents(path), Sinks(sinks).handle, end, period_seconds)
    if status.state in ENDED_WITHOUT_EVENT:
        typer.echo(f"{name_of(path)}: {state_text(status)}")


def _pass_events(
    status: RunStatus,
    events: RunEvents,
    handle: Callable[[Event], None],
    end: EndDetector,
    period_seconds: float,
) -> bool:
    """Pass events on until the run ends (return False) or its files become shorter (return True)."""
    while True:
        status.refresh()
        found = events.new()
        if found is None:
            return True
        for event in found:
            handle(event)
        if end.has_ended(status):
            return False
        time.sleep(period_seconds)


def _watch_sweep(path: Path, period_seconds: float, *, once: bool, plain: bool) -> None:
    """Show the runs of a sweep, whichever hosts they run on, until all have ended."""
    from contextlib import closing

    from rich.console import Console

    from atari_dqn.run.sweep.status import SweepStatus
    from atari_dqn.view.sweep_text import PIPE_COLUMNS, status_lines
    from atari_dqn.view.sweep_views import sweep_view

    status = SweepStatus(path)
    status.refresh()
    if once:
        console = Console()
        typer.echo("\n".join(status_lines(status, console.width if console.is_terminal else PIPE_COLUMNS)))
        return
    names = [each.member.name for each in status.members]
    with closing(sweep_view(status, sys.stdout, plain=plain)) as view:
        while not status.has_ended:
            view.show(names)
            time.sleep(period_seconds)


def _watch_several(paths: Sequence[Path], period_seconds: float, *, once: bool) -> None:
    """Show a table of runs, updated until all have ended; print it once if there is no terminal."""
    from rich.console import Console

    from atari_dqn.run.tailing.ending import EndDetector
    from atari_dqn.run.tailing.status import TailedRun
    from atari_dqn.view.summary import summary_table
    from atari_dqn.view.suspendable_live import SuspendableLive

    console = Console()
    if not console.is_terminal:
        console = Console(width=_SUMMARY_COLUMNS)
    followed = [TailedRun(path) for path in paths]
    ends = {path: EndDetector(now=time.monotonic) for path in paths}
    runs = _look(followed)
    _check_any_readable(runs)
    if once or not console.is_terminal:
        console.print(summary_table(runs, columns=console.width))
        return
    with SuspendableLive(
        get_renderable=lambda: summary_table(runs, columns=console.width), console=console, auto_refresh=False
    ) as live:
        live.refresh()
        while not _have_ended(runs, ends):
            time.sleep(period_seconds)
            runs = _look(followed)
            live.refresh()


def _look(followed: Sequence[TailedRun]) -> dict[Path, RunStatus | Unreadable]:
    return {run.path: run.refresh() for run in followed}


def _have_ended(runs: Mapping[Path, RunStatus | Unreadable], ends: Mapping[Path, EndDetector]) -> bool:
    """Return whether every run that can be read has ended."""
    from atari_dqn.run.tailing.status import RunStatus

    ended = [ends[path].has_ended(found) for path, found in runs.items() if isinstance(found, RunStatus)]
    return all(ended)


def _check_any_readable(runs: dict[Path, RunStatus | Unreadable]) -> None:
    """Raise a `UserError` with the reasons if no run can be read."""
    from atari_dqn.run.tailing.isolation import Unreadable
    from atari_dqn.view.summary import name_of

    unreadable = {path: found for path, found in runs.items() if isinstance(found, Unreadable)}
    reasons = [f"{name_of(path)}: {found.reason}" for path, found in unreadable.items()]
    if len(reasons) == len(runs):
        raise UserError("; ".join(reasons))
