"""The end of `dqn sweep`: the comparison of its runs, and the error of a sweep that is not complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from atari_dqn.errors import DamagedError, InterruptedRunError, UserError
from atari_dqn.formatting import plural, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atari_dqn.run.sweep.folder import SweepFolder
    from atari_dqn.run.sweep.status import SweepStatus
    from atari_dqn.scale.scheduler import SweepResult


def conclude(status: SweepStatus, result: SweepResult, signal_number: int | None, options: str = "") -> None:
    """Print the comparison of what has finished; raise the error of a sweep that is not complete.

    `options`: those with which the command that continues is printed.
    """
    if signal_number is not None and result.unfinished and result.error is None:
        raise _interruption(status.folder, result, signal_number, options)
    error = _failure(status, result)
    try:
        if result.finished:
            _print_comparison(status, result.finished)
    except (UserError, DamagedError) as unreadable:
        if error is None:
            raise
        error.add_note(f"what has finished cannot be compared: {unreadable}")
    if error is not None:
        raise error


def _interruption(folder: SweepFolder, result: SweepResult, signal_number: int, options: str) -> Exception:
    """Return the error of a sweep that a signal has interrupted, with the command that continues."""
    from atari_dqn.cli.workers import continuing

    error = InterruptedRunError(signal_number)
    saved = sum(bool(folder.newest_checkpoint(name)) for name in result.unfinished)
    error.add_note(
        f"{plural(len(result.unfinished), 'run')} left, {saved:,} of them with a checkpoint; "
        f"`{continuing('sweep', folder.path, options)}` continues"
    )
    if result.failed:
        status = continuing("sweep", folder.path, "--status")
        error.add_note(f"{plural(len(result.failed), 'run')} failed: `{status}` shows the reasons")
    return error


def _failure(status: SweepStatus, result: SweepResult) -> Exception | None:
    """Return the error of the worst failure with the reasons of all; None if every run could be trained."""
    from atari_dqn.run.sweep.failures import ERRORS
    from atari_dqn.view.sweep_text import failure_lines

    if not result.failed:
        return result.error
    kinds = {failure.kind for failure in result.failed.values()}
    lines = [f"{plural(len(result.failed), 'run')} failed:", *failure_lines(status)]
    if result.error is not None:
        lines.append(f"{len(result.unfinished):,} not trained: {result.error}")
    return next(error for kind, error in ERRORS.items() if kind in kinds)("\n".join(lines))


def _print_comparison(status: SweepStatus, names: Sequence[str]) -> None:
    """Print the table of `dqn compare`, and the estimates of the median over 57 games."""
    from rich.console import Console

    from atari_dqn.compare.comparison import compare_readable
    from atari_dqn.compare.median_estimate import median_estimates
    from atari_dqn.view.comparison_tables import comparison_view
    from atari_dqn.view.safe import Safe

    places = status.record.places()
    ordered = sorted(names, key=lambda name: places.get(name, len(places)))
    comparison = compare_readable([status.folder.path / name for name in ordered], human_table="atari57")
    Console().print(Safe(comparison_view(comparison)))
    for estimate in median_estimates(comparison):
        typer.echo(wrapped(str(estimate)))
