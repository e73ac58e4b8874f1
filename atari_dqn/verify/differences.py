"""Find the differences of a repetition from a second one, and from what the run recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from atari_dqn.run.checkpoint.state_tree import digest_of_digests
from atari_dqn.run.checkpoint.store import load_checkpoint
from atari_dqn.verify.records import RecordedState
from atari_dqn.verify.repetition import REPEATED, Repetition, digests_of


def between(first: Repetition, second: Repetition) -> Iterator[str]:
    """Yield the first difference of the states of two repetitions, and each of their tables and returns."""
    for step, state in first.states.items():
        if part := first_difference(state, second.states.get(step, {})):
            yield f"between the repetitions {part} differs at step {step:,}"
            break
    for table in REPEATED:
        if first.rows[table] != second.rows[table]:
            yield f"between the repetitions {table}.csv differs"
    if first.returns != second.returns:
        yield f"between the repetitions an evaluation returns {first.returns} and {second.returns}"


def from_recorded(repetition: Repetition, recorded_states: Sequence[RecordedState]) -> Iterator[str]:
    """Yield each recorded state that was not reached, up to the first that was reached and differs."""
    for recorded in recorded_states:
        state = repetition.states.get(recorded.step)
        if state is None:
            yield f"the run saved step {recorded.step:,}, which the repetition did not reach"
        elif digest_of_digests(state) != recorded.digest:
            yield f"{_part_that_differs(recorded, state)} differs from the state of {recorded.name}"
            return


def from_own_rows(repetition: Repetition, own_rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the first row of each table that is not that of the run; `own_rows`: the run's rows by table."""
    for table, rows in own_rows.items():
        for number, (own, repeated) in enumerate(
            zip_longest(rows, repetition.rows[table][: len(rows)]), start=1
        ):
            if repeated != own:
                row = f"{table}.csv, row {number} of the repeated part"
                yield f"{row}: {own} in the run, {repeated or 'none'} now"
                break


def lost_rows(repetition: Repetition, own_rows: Mapping[str, Sequence[str]], *, until: int) -> Iterator[str]:
    """Yield a caveat for each table that lacks rows which the repetition has up to the step `until`.

    A power failure may have lost more of one table than of another. `until` lies before the last step that
    the run recorded, at which a killed run may have written the rows of some tables only.
    """
    for table, rows in own_rows.items():
        repeated = [row for row in repetition.rows[table] if int(row.partition(",")[0]) <= until]
        if len(rows) < len(repeated):
            yield (
                f"{table}.csv of the run has {len(rows)} of {len(repeated)} rows up to step {until:,}; "
                "the others are lost, and were not compared"
            )


def explained(result: str, differences: Sequence[str]) -> Iterator[str]:
    """Yield a caveat for differences that the reasons before it explain; none without differences."""
    if differences:
        beginning = differences[0].partition(":")[0]
        yield f"for these reasons {result}, first: {beginning}"


def first_difference(expected: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """Return the dotted path of the first part that differs or exists in one state only; None if equal."""
    for path, digest in expected.items():
        if found.get(path) != digest:
            return path
    return next((path for path in found if path not in expected), None)


def _part_that_differs(recorded: RecordedState, state: Mapping[str, str]) -> str:
    if recorded.checkpoint is None:  # only the digest of the complete state is known
        return "the state"
    expected, _ = load_checkpoint(recorded.checkpoint)
    return str(first_difference(digests_of(expected), state))
