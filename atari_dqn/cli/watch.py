"""`dqn watch`."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import LONGEST_SECONDS, number
from atari_dqn.cli.tables import print_table
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.formatting import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from atari_dqn.run.directory import RunDirectory
    from atari_dqn.run.tailing.ending import EndDetector
    from atari_dqn.run.tailing.isolation import Unreadable
    from atari_dqn.run.tailing.run_events import RunEvents
    from atari_dqn.run.tailing.status import RunStatus, TailedRun
    from atari_dqn.telemetry.events import Event, Sink
    from atari_dqn.view.title import TitleView

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
            help="Print lines instead of the live view: past evaluations and notices, the latest periods, "
            "and what follows. Of several runs: their table, once; of a sweep: its changes.",
        ),
    ] = False,
) -> None:
    """Show the progress of a run from its files; several runs, or a sweep, as a table."""
    period_seconds = number("--every", every, low=_SHORTEST_SECONDS, high=LONGEST_SECONDS)
    with interrupts_blocked():
        import rich.live  # noqa: F401 - not to be interrupted while it is imported

        import atari_dqn.view.run_views  # noqa: F401
        from atari_dqn.run.folders import expand_run_paths
        from atari_dqn.run.log_damage import suggesting_log_remedy
        from atari_dqn.run.sweep.folder import is_sweep

    paths = _watchable(expand_run_paths(run_dirs))
    try:
        if len(run_dirs) == 1 and is_sweep(run_dirs[0]):
            _watch_sweep(run_dirs[0], period_seconds, once=once, plain=plain)
        elif len(paths) > 1 or paths != run_dirs:
            _watch_several(paths, period_seconds, once=once or plain)
        else:
            with suggesting_log_remedy(paths[0]):
                if once:
                    _print_status(paths[0])
                else:
                    _watch_one(paths[0], period_seconds, plain=plain)
    except KeyboardInterrupt:  # ends the watching; the run continues
        return


def _watchable(paths: Sequence[Path]) -> list[Path]:
    """Leave out tunes and archives, and name each on the error stream; `UserError` if nothing is left."""
    from atari_dqn.run.archive.archive import is_archive_file
    from atari_dqn.run.folder_kinds import is_tune, tune_text

    tunes, archives = list(filter(is_tune, paths)), list(filter(is_archive_file, paths))
    texts = [tune_text(path) for path in tunes]
    if archives:
        texts.append(
            f"{', '.join(map(str, archives))}: archives have no live view; `dqn compare` shows their scores, "
            "and `dqn eval` plays games with one"
        )
    found = [path for path in paths if path not in (*tunes, *archives)]
    if not found:
        raise UserError("; ".join(texts))
    for text in texts:
        typer.echo(printable(f"left out: {text}"), err=True)
    return found


def _print_status(path: Path) -> None:
    from rich.console import Console

    from atari_dqn.run.tailing.status import RunStatus
    from atari_dqn.view.run_state import status_text
    from atari_dqn.view.summary import name_of
    from atari_dqn.view.terminal import is_on_terminal

    run = _open(path)
    status = RunStatus(run.path)
    status.refresh()
    console = Console(soft_wrap=True)
    columns = console.width if is_on_terminal(console) else None
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
    from atari_dqn.run.tailing.run_events import RECENT_BYTES, RunEvents
    from atari_dqn.run.tailing.shown_progress import shown_progress
    from atari_dqn.run.tailing.status import RunStatus
    from atari_dqn.spec.loader import load_resolved
    from atari_dqn.view.run_state import state_text
    from atari_dqn.view.run_views import run_views
    from atari_dqn.view.summary import name_of

    run = _open(path)
    resolved = load_resolved(run.spec, run.read_provenance())
    again, end = True, EndDetector(now=time.monotonic)
    while again:
        status = RunStatus(path)
        status.refresh()
        show_state, budget = partial(state_text, status), shown_progress(status).shown_budget
        views = run_views(name_of(path), resolved, budget, plain=plain, state_text=show_state)
        events = RunEvents(path, last_bytes=RECENT_BYTES, best_episode=True)
        with views as (view, title):
            again = _pass_events(status, events, partial(_show_events, view, title), end, period_seconds)
    if status.state in ENDED_WITHOUT_EVENT:
        typer.echo(f"{name_of(path)}: {state_text(status)}")


def _show_events(view: Sink, title: TitleView, events: Sequence[Event]) -> None:
    """Show the events that were read at once; a whole history changes the title once."""
    for event in events:
        view.handle(event)
    title.handle_all(events)


def _pass_events(
    status: RunStatus,
    events: RunEvents,
    show: Callable[[Sequence[Event]], None],
    end: EndDetector,
    period_seconds: float,
) -> bool:
    """Show events until the run ends (return False) or its files become shorter (return True)."""
    from atari_dqn.run.log_damage import log_damage, notice_of_damage

    reported = ""
    while True:
        status.refresh()
        found = events.new()
        if found is None:
            return True
        damage = log_damage(status)
        if damage not in ("", reported):
            found.append(notice_of_damage(status, damage))
        reported = damage
        show(found)
        if end.has_ended(status):
            return False
        time.sleep(period_seconds)


def _watch_sweep(path: Path, period_seconds: float, *, once: bool, plain: bool) -> None:
    """Show the runs of a sweep, whichever hosts they run on, until all have ended."""
    from contextlib import closing

    from atari_dqn.run.sweep.status import SweepStatus
    from atari_dqn.view.sweep_text import failure_lines, status_lines
    from atari_dqn.view.sweep_views import sweep_view
    from atari_dqn.view.wrapping import lines_for

    status = SweepStatus(path)
    status.refresh()
    if once:
        print_table(partial(status_lines, status))
        return
    try:
        with closing(sweep_view(status, sys.stdout, plain=plain)) as view:
            while not status.has_ended:
                view.show([each.member.name for each in status.members])
                time.sleep(period_seconds)
    finally:  # after Ctrl-C too
        for line in lines_for(sys.stdout, failure_lines(status)):
            typer.echo(line)


def _watch_several(paths: Sequence[Path], period_seconds: float, *, once: bool) -> None:
    """Show a table of runs, updated until all have ended; print it once where no live view can be shown."""
    from rich.console import Console, Group

    from atari_dqn.run.tailing.ending import EndDetector
    from atari_dqn.run.tailing.status import TailedRun
    from atari_dqn.view.summary import summary_table
    from atari_dqn.view.suspendable_live import SuspendableLive
    from atari_dqn.view.terminal import is_on_terminal, suits_live_view

    console = Console()
    if not is_on_terminal(console):
        console = Console(width=_SUMMARY_COLUMNS)
    followed = [TailedRun(path) for path in paths]
    ends = {path: EndDetector(now=time.monotonic) for path in paths}
    runs = _look(followed)
    _check_any_readable(runs)
    if once or not suits_live_view(console):
        console.print(summary_table(runs, columns=console.width))
        return

    def draw() -> Group:
        return summary_table(runs, columns=console.width, lines=console.height)

    with SuspendableLive(get_renderable=draw, console=console, auto_refresh=False) as live:
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
    from atari_dqn.view.summary import run_names

    names = run_names(runs)
    unreadable = {path: found for path, found in runs.items() if isinstance(found, Unreadable)}
    reasons = [f"{names[path]}: {found.reason}" for path, found in unreadable.items()]
    if len(reasons) == len(runs):
        raise UserError("; ".join(reasons))
