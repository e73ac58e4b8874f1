"""The end of `dqn tune`: its table, the files of its outcome, the error of a tune that is not complete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from atari_dqn.cli.tables import print_lines, print_table
from atari_dqn.errors import HaltedError, InterruptedRunError

if TYPE_CHECKING:
    from atari_dqn.scale.tuning.folder import TuneFolder, TuneRecord
    from atari_dqn.scale.tuning.study import TrialLog
    from atari_dqn.scale.tuning.tuner import TuneResult


def print_outcome(record: TuneRecord, folder: TuneFolder, log: TrialLog) -> None:
    """Print the trials, the best first, and what the scores are."""
    from atari_dqn.scale.tuning.ranking import protocol_lines, read_standing
    from atari_dqn.scale.tuning.table import status_lines

    standing = read_standing(record, folder, log)
    print_table(partial(status_lines, standing, protocol_lines(standing, folder), log.importance()))


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
        error.add_note(f"runs that have a checkpoint go on from it; {command}")
        raise error
    print_outcome(record, folder, log)
    if not standing.ranked:
        raise HaltedError("no trial is complete: their reasons are in the table above")
    print_lines([f"best specs: {folder.best}/*.toml; table: {folder.table}; plot: {folder.plot}"])
