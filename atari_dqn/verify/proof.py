"""`dqn verify`: check the checksums, repeat a part of the run twice, and compare with the run's records."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from atari_dqn.clock import frames_to_steps, steps_to_frames
from atari_dqn.run.archive.archive import refuse_imported
from atari_dqn.run.checkpoint.state_tree import digest_of_digests
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import KEY, steps_with_the_same_threads
from atari_dqn.train.resume_exactness import why_not_deterministic, why_not_repeatable, why_not_restored
from atari_dqn.train.resume_point import ResumePoint, beginning_of, recorded_spec, resume_command
from atari_dqn.train.resumption import resume_point
from atari_dqn.verify.checks import CheckedFiles, check_run
from atari_dqn.verify.differences import between, explained, from_own_rows, from_recorded, lost_rows
from atari_dqn.verify.records import (
    RecordedState,
    Records,
    records_of,
    repeated_rows,
    repeated_tables,
    start_to_compare,
)
from atari_dqn.verify.repetition import Repetition, repeat_in_fresh_process

Verdict = Literal["exact", "repeats", "inexact", "differs"]
"""`exact`: both repetitions equal what the run recorded. `repeats`: they equal each other only. `inexact`:
they differ, as repetitions of such a run may. `differs`: there is a difference that nothing explains."""
BEGINNING = "beginning"
OnProgress = Callable[[str, int, int], None]
"""A function of the current activity, the part that is done and the total."""
_FRAMES = 10_000
"""Default number of emulator frames to repeat, in addition to those before learning begins."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was compared, and the differences that were found."""

    run: str
    checked: CheckedFiles
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
    repeats: bool
    """Whether the repetitions equal each other."""
    differences: tuple[str, ...]
    """Differences that no caveat explains."""
    caveats: tuple[str, ...]
    """Reasons why a run without differences cannot be called exact."""

    @property
    def verdict(self) -> Verdict:
        """The result in one word."""
        if self.differences:
            return "differs"
        if not self.repeats:
            return "inexact"
        return "repeats" if self.caveats else "exact"


def check_only(path: Path) -> CheckedFiles:
    """Check the files of a run; `DamagedError` names the first damaged file and an undamaged checkpoint."""
    refuse_imported(path)
    run = RunDirectory.open(path)
    with run.locked_for_reading():
        return check_run(run)


def verify_run(
    path: Path,
    *,
    checkpoint: str | None,
    frames: int | None,
    device: torch.device,
    on_progress: OnProgress,
) -> Verification:
    """Check the files of a run, then repeat `frames` of it twice from a checkpoint, and compare.

    By default it starts from a checkpoint after which the run recorded something, and repeats 10,000 frames
    plus those before learning begins, but never more than the run has. The run directory is not changed.
    Raise `UserError` for invalid input, `DamagedError` for a damaged file.
    """
    refuse_imported(path)
    run = RunDirectory.open(path)
    with run.locked_for_reading():
        on_progress("checking files", 0, 1)
        checked = check_run(run)
        records, spec = records_of(run), recorded_spec(run).spec
        steps = frames_to_steps(frames or _FRAMES, frame_skip=spec.env.frame_skip)
        point = _start_point(run, records, checkpoint, steps)
        if frames is None:
            steps += max(0, spec.replay.prefill_steps - point.step)
        same_threads = steps_with_the_same_threads(run, point.step, saved=point.bookkeeping.get(KEY))
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
    checked: CheckedFiles,
    point: ResumePoint,
    records: Records,
    end: int,
    repetitions: list[Repetition],
    device: torch.device,
) -> Verification:
    first, second = repetitions
    last = first.states[max(first.states)]
    spec = recorded_spec(run).spec
    recorded_states = records.states_within(point.step, end)
    own_rows = {table: _own_rows(run, point, table, end) for table in repeated_tables(run)}
    reasons = _why_not_as_recorded(run, point, records, device)
    of_each_other = tuple(between(first, second))
    of_records = (*from_recorded(first, recorded_states), *from_own_rows(first, own_rows))
    differences, excused = _excused(
        (of_each_other, any(why_not_deterministic(spec, device)), "the repetitions differ"),
        (of_records, bool(reasons), "it is not as the run recorded it"),
    )
    return Verification(
        run=str(run.path),
        checked=checked,
        checkpoint=_name(point),
        from_frames=steps_to_frames(point.step, frame_skip=spec.env.frame_skip),
        to_frames=steps_to_frames(max(first.states), frame_skip=spec.env.frame_skip),
        seconds=first.seconds,
        updates=first.updates,
        state_parts=len(last),
        state_digest=digest_of_digests(last),
        recorded=tuple(state.name for state in recorded_states),
        rows={table: len(rows) for table, rows in first.rows.items()},
        own_rows={table: len(rows) for table, rows in own_rows.items()},
        returns=first.returns,
        repeats=not of_each_other,
        differences=differences,
        caveats=(
            *reasons,
            *excused,
            *lost_rows(first, own_rows, until=min(end, records.last_step - 1)),
            *_nothing_recorded(run, point, records, recorded_states, own_rows),
            *_nothing_learned(run, point, records, first, end),
        ),
    )


def _excused(
    *comparisons: tuple[tuple[str, ...], bool, str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the differences that count, and sentences about those that are excused.

    Each comparison has its differences, whether there is a reason for them, and a title.
    """
    differences: list[str] = []
    excused: list[str] = []
    for found, is_excused, title in comparisons:
        if is_excused:
            excused += explained(title, found)
        else:
            differences += found
    return tuple(differences), tuple(excused)


def _why_not_as_recorded(
    run: RunDirectory, point: ResumePoint, records: Records, device: torch.device
) -> tuple[str, ...]:
    """Return each reason why a repetition from a point on `device` may differ from the run's records."""
    here = [*why_not_repeatable(run, device), *(why_not_restored(run) if point.checkpoint else ())]
    earlier = {
        resume.reason: f"resumed at step {resume.step:,}: {resume.reason}"
        for resume in records.inexact_until(point.step)
        if resume.reason not in here
    }
    return (*here, *earlier.values())


def _own_rows(run: RunDirectory, point: ResumePoint, table: str, end: int) -> list[str]:
    """Return the lines of `repeated_rows` that the run wrote between a point and the step `end`."""
    path = run.tables / f"{table}.csv"
    with path.open("rb") as file:
        header = file.readline()
        begins = point.bookkeeping["tables"] if point.checkpoint else {}
        file.seek(begins.get(table, len(header)))  # a table that is newer than the checkpoint begins with it
        text = (header + file.read()).decode(errors="replace")
    return [line for step, line in repeated_rows(text) if step <= end]


def _name(point: ResumePoint) -> str:
    return point.checkpoint.name if point.checkpoint else BEGINNING


def _nothing_recorded(
    run: RunDirectory,
    point: ResumePoint,
    records: Records,
    recorded_states: list[RecordedState],
    own_rows: dict[str, list[str]],
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
