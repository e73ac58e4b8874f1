"""The end of `dqn tune`: its table, the files of its outcome, the error of a tune that is not complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from atari_dqn.errors import HaltedError, InterruptedRunError

if TYPE_CHECKING:
    from atari_dqn.scale.tuning.folder import TuneFolder, TuneRecord
    from atari_dqn.scale.tuning.study import TrialLog
    from atari_dqn.scale.tuning.tuner import TuneResult

_PIPE_COLUMNS = 110
"""Width of the table where there is no terminal."""


def print_outcome(record: TuneRecord, folder: TuneFolder, log: TrialLog) -> None:
    """Print the trials, the best first, and what the scores are."""
    from textwrap import wrap

    from rich.console import Console

    from atari_dqn.scale.tuning.ranking import protocol_lines, read_standing
    from atari_dqn.scale.tuning.table import status_lines

    console = Console()
    columns = console.width if console.is_terminal else _PIPE_COLUMNS
    standing = read_standing(record, folder, log)
    for line in status_lines(standing, protocol_lines(standing, folder), log.importance(), columns):
        typer.echo("\n".join(wrap(line, columns)) if console.is_terminal and len(line) > columns else line)


def conclude(
    record: TuneRecord,
    folder: TuneFolder,
    log: TrialLog,
    result: TuneResult,
    signal_number: int | None,
    options: str = "",
) -> None:
    """Write the outcome and print it; raise the error of a tune that is not complete.

    `options`: those with which the command that continues is printed.
    """
    from atari_dqn.cli.workers import continuing
    from atari_dqn.run.sweep.failures import ERRORS
    from atari_dqn.scale.tuning.ranking import read_standing
    from atari_dqn.scale.tuning.results import write_results

    standing = read_standing(record, folder, log)
    write_results(standing, folder, log.importance())
    command = f"`{continuing('tune', folder.path, options)}` continues"
    if result.failure is not None:
        name, failure = result.failure
        output = folder.runs.output(name)
        raise ERRORS[failure.kind](
            f"{name} {failure.kind}: {failure.reason}\n  its output: {output}\n"
            f"  this is no fault of its values; once the cause is removed, {command}"
        )
    if signal_number is not None and not result.is_complete:
        error = InterruptedRunError(signal_number)
        error.add_note(f"the runs that ran have been saved; {command}")
        raise error
    print_outcome(record, folder, log)
    if not standing.ranked:
        raise HaltedError("no trial is complete: their reasons are in the table above")
    typer.echo(f"best specs: {folder.best}/*.toml; table: {folder.table}; plot: {folder.plot}")
