"""`dqn verify`: check the checksums, repeat a part of the run twice, and compare with the run's records."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import torch

from atari_dqn.clock import frames_to_steps, steps_to_frames
from atari_dqn.run.archive.archive import refuse_imported
from atari_dqn.run.checkpoint.state_tree import digest_of_digests
from atari_dqn.run.checkpoint.store import load_checkpoint
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import steps_with_the_same_threads
from atari_dqn.train.resume_exactness import why_not_repeatable, why_not_restored
from atari_dqn.train.resumption import (
    ResumePoint,
    beginning_of,
    recorded_spec,
    resume_command,
    resume_point,
    suggesting_intact_checkpoint,
)
from atari_dqn.verify.checks import Checked, check_run
from atari_dqn.verify.records import (
    RecordedState,
    Records,
    records_of,
    repeated_rows,
    repeated_tables,
    start_to_compare,
)
from atari_dqn.verify.repetition import REPEATED, Repetition, digests_of, repeat_in_fresh_process

Verdict = Literal["exact", "repeats", "differs"]
"""`exact`: both repetitions equal what the run recorded. `repeats`: they equal each other only."""
BEGINNING = "beginning"
OnProgress = Callable[[str, int, int], None]
"""A function of the current activity, the part that is done and the total."""
_FRAMES = 10_000
"""Default number of emulator frames to repeat, in addition to those before learning begins."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was compared, and the differences that were found."""

    run: str
    checked: Checked
    checkpoint: str
    from_frames: int
    to_frames: int
    seconds: float
    """Duration of the first repetition."""
    updates: int
    """Gradient steps within these frames."""
    state_parts: int
    state_digest: str
    recorded: tuple[str, ...]
    """Names of the run's later checkpoints, including removed ones, with which the state was compared."""
    rows: dict[str, int]
    """Number of log rows that the first repetition wrote, by table."""
    own_rows: dict[str, int]
    """Number of log rows of the run with which they were compared, by table."""
    returns: tuple[float, ...]
    differences: tuple[str, ...]
    caveats: tuple[str, ...]
    """Reasons why a run without differences cannot be called exact."""

    @property
    def verdict(self) -> Verdict:
        """The result in one word."""
        if self.differences:
            return "differs"
        return "repeats" if self.caveats else "exact"


def check_only(path: Path) -> Checked:
    """Check every file of a run; `DamagedError` names the first damaged file and an undamaged checkpoint."""
    refuse_imported(path)
    run = RunDirectory.open(path)
    with run.locked_for_reading(), suggesting_intact_checkpoint(run):
        return check_run(run)


def verify_run(
    path: Path,
    *,
    checkpoint: str | None,
    frames: int | None,
    device: torch.device,
    on_progress: OnProgress,
) -> Verification:
    """Check every file of a run, then repeat `frames` of it twice from a checkpoint, and compare.

    By default it starts from a checkpoint after which the run recorded something, and repeats 10,000 frames
    plus those before learning begins, but never more than the run has. The run directory is not changed.
    Raise `UserError` for invalid input, `DamagedError` for a damaged file.
    """
    refuse_imported(path)
    run = RunDirectory.open(path)
    with run.locked_for_reading():
        on_progress("checking files", 0, 1)
        with suggesting_intact_checkpoint(run):
            checked = check_run(run)
        records, spec = records_of(run), recorded_spec(run).spec
        steps = frames_to_steps(frames or _FRAMES, frame_skip=spec.env.frame_skip)
        point = _start_point(run, records, checkpoint, steps)
        if frames is None:
            steps += max(0, spec.replay.prefill_steps - point.step)
        same_threads = steps_with_the_same_threads(run, point.step)
        end = int(min(records.end(point.step, steps), same_threads))
        repetitions = _repeat_twice(run, point, records, end, device, on_progress)
        return _compare(run, checked, point, records, end, repetitions, device)


def _start_point(run: RunDirectory, records: Records, checkpoint: str | None, steps: int) -> ResumePoint:
    if checkpoint == BEGINNING:
        return beginning_of(run)
    if checkpoint is not None:
        return resume_point(run, checkpoint)
    return start_to_compare(run, records, steps=steps, restores=not any(why_not_restored(run)))


def _repeat_twice(
    run: RunDirectory,
    point: ResumePoint,
    records: Records,
    end: int,
    device: torch.device,
    on_progress: OnProgress,
) -> list[Repetition]:
    stops = sorted({*(state.step for state in records.states_within(point.step, end)), end})
    name = point.checkpoint.name if point.checkpoint else None

    def repeat(activity: str) -> Repetition:
        def on_step(step: int) -> None:
            on_progress(activity, step - point.step, end - point.step)

        on_step(point.step)
        return repeat_in_fresh_process(run.path, name, str(device), stops, on_step)

    return [repeat("repeating"), repeat("repeating again")]


def _compare(
    run: RunDirectory,
    checked: Checked,
    point: ResumePoint,
    records: Records,
    end: int,
    repetitions: list[Repetition],
    device: torch.device,
) -> Verification:
    first, second = repetitions
    last = first.states[max(first.states)]
    skip = recorded_spec(run).spec.env.frame_skip
    recorded_states = records.states_within(point.step, end)
    own_rows = {table: _own_rows(run, point, table, end) for table in repeated_tables(run)}
    compared = {table: len(rows) for table, rows in own_rows.items()}
    not_repeatable = tuple(why_not_repeatable(run, device))
    from_records = (*_from_recorded(first, recorded_states), *_from_own_rows(first, own_rows))
    return Verification(
        run=str(run.path),
        checked=checked,
        checkpoint=_name(point),
        from_frames=steps_to_frames(point.step, frame_skip=skip),
        to_frames=steps_to_frames(max(first.states), frame_skip=skip),
        seconds=first.seconds,
        updates=first.updates,
        state_parts=len(last),
        state_digest=digest_of_digests(last),
        recorded=tuple(state.name for state in recorded_states),
        rows={table: len(rows) for table, rows in first.rows.items()},
        own_rows=compared,
        returns=first.returns,
        differences=(*_between(first, second), *(() if not_repeatable else from_records)),
        caveats=(
            *not_repeatable,
            *(_explained(from_records) if not_repeatable else ()),
            *(why_not_restored(run) if point.checkpoint else ()),
            *_nothing_recorded(run, point, records, recorded_states, compared),
            *_nothing_learned(run, point, records, first, end),
        ),
    )


def _explained(differences: Sequence[str]) -> Iterator[str]:
    """Yield a caveat for differences from the records, which another version or machine explains."""
    if differences:
        beginning = differences[0].partition(":")[0]
        yield f"for these reasons it is not as the run recorded it, first: {beginning}"


def _between(first: Repetition, second: Repetition) -> Iterator[str]:
    for step, state in first.states.items():
        if part := first_difference(state, second.states.get(step, {})):
            yield f"between the repetitions {part} differs at step {step:,}"
            break
    for table in REPEATED:
        if first.rows[table] != second.rows[table]:
            yield f"between the repetitions {table}.csv differs"
    if first.returns != second.returns:
        yield f"between the repetitions an evaluation returns {first.returns} and {second.returns}"


def _from_recorded(repetition: Repetition, recorded_states: list[RecordedState]) -> Iterator[str]:
    for recorded in recorded_states:
        state = repetition.states.get(recorded.step)
        if state is None:
            yield f"the run saved step {recorded.step:,}, which the repetition did not reach"
        elif digest_of_digests(state) != recorded.digest:
            yield f"{_part_that_differs(recorded, state)} differs from the state of {recorded.name}"
            return


def _part_that_differs(recorded: RecordedState, state: dict[str, str]) -> str:
    if recorded.checkpoint is None:  # only the digest of the complete state is known
        return "the state"
    expected, _ = load_checkpoint(recorded.checkpoint)
    return str(first_difference(digests_of(expected), state))


def _from_own_rows(repetition: Repetition, own_rows: dict[str, list[str]]) -> Iterator[str]:
    for table, rows in own_rows.items():
        for number, (own, repeated) in enumerate(
            zip_longest(rows, repetition.rows[table][: len(rows)]), start=1
        ):
            if repeated != own:
                row = f"{table}.csv, row {number} of the repeated part"
                yield f"{row}: {own} in the run, {repeated or 'none'} now"
                break


def first_difference(expected: dict[str, str], found: dict[str, str]) -> str | None:
    """Return the dotted path of the first part that differs or exists in one state only; None if equal."""
    for path, digest in expected.items():
        if found.get(path) != digest:
            return path
    return next((path for path in found if path not in expected), None)


def _own_rows(run: RunDirectory, point: ResumePoint, table: str, end: int) -> list[str]:
    """Return the lines of `repeated_rows` that the run wrote between a point and the step `end`."""
    path = run.tables / f"{table}.csv"
    with path.open("rb") as file:
        header = file.readline()
        begins = point.bookkeeping["tables"] if point.checkpoint else {}
        file.seek(begins.get(table, len(header)))  # a table that is newer than the checkpoint begins with it
        text = (header + file.read()).decode()
    return [line for step, line in repeated_rows(text) if step <= end]


def _name(point: ResumePoint) -> str:
    return point.checkpoint.name if point.checkpoint else BEGINNING


def _nothing_recorded(
    run: RunDirectory,
    point: ResumePoint,
    records: Records,
    recorded_states: list[RecordedState],
    own_rows: dict[str, int],
) -> Iterator[str]:
    """Yield a caveat if no record of the run was compared, with the command that compares one."""
    if recorded_states or any(own_rows.values()):
        return
    if records.last_step:
        remedy = f"`{_command(run)} --checkpoint {BEGINNING}` compares with what it recorded before"
    else:
        remedy = f"`{resume_command(run)}` continues the run, which has recorded nothing yet"
    yield f"the run recorded nothing within these frames after {_name(point)} to compare with; {remedy}"


def _nothing_learned(
    run: RunDirectory, point: ResumePoint, records: Records, repetition: Repetition, end: int
) -> Iterator[str]:
    """Yield a caveat if the run made updates but none was repeated, with the command that repeats some."""
    if repetition.updates or end >= records.last_step:
        return
    spec = recorded_spec(run).spec
    steps = max(0, spec.replay.prefill_steps - point.step)
    frames = steps_to_frames(steps, frame_skip=spec.env.frame_skip) + _FRAMES
    yield (
        "no update was made within these frames; "
        f"`{_command(run)} --checkpoint {_name(point)} --frames {frames}` includes updates"
    )


def _command(run: RunDirectory) -> str:
    return f"dqn verify {shlex.quote(str(run.path))}"
