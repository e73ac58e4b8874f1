"""`dqn verify`: checksums, then playing on from a checkpoint twice, and what the run itself recorded."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from atari_dqn.checkpoint.store import CheckpointStore, load_checkpoint, read_manifest
from atari_dqn.checkpoint.tree import digest_of_digests
from atari_dqn.clock import frames_to_steps, steps_to_frames
from atari_dqn.run import RunDirectory
from atari_dqn.threads import steps_with_the_same_threads
from atari_dqn.train.promises import why_inexact
from atari_dqn.train.resumption import (
    Point,
    beginning_of,
    offering_a_whole_one,
    point_of,
    recorded_spec,
)
from atari_dqn.verify.checks import Checked, check_run
from atari_dqn.verify.replay import REPEATED, Trace, digests_of, in_fresh_process, play_on

Verdict = Literal["exact", "repeats", "differs"]
"""`exact`: the same as the run itself recorded. `repeats`: the same twice, which is less."""
BEGINNING = "beginning"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was compared, and what came of it."""

    run: str
    checked: Checked
    checkpoint: str
    from_frames: int
    to_frames: int
    seconds: float
    """Of playing on once."""
    state_parts: int
    state_digest: str
    recorded: tuple[str, ...]
    """Later checkpoints of the run whose state was met."""
    rows: dict[str, int]
    """By table: log rows that were written twice."""
    own_rows: dict[str, int]
    """By table: those among them that the run itself had written."""
    returns: tuple[float, ...]
    differences: tuple[str, ...]
    caveats: tuple[str, ...]
    """Why a run that repeats may not be called exact."""

    @property
    def verdict(self) -> Verdict:
        """The one word."""
        if self.differences:
            return "differs"
        return "repeats" if self.caveats else "exact"


def check_only(path: Path) -> Checked:
    """Check every file of a run; `DamagedError` names the first that is damaged, and a whole checkpoint."""
    run = RunDirectory.open(path)
    with run.held_still(), offering_a_whole_one(run):
        return check_run(run)


def verify_run(path: Path, *, checkpoint: str | None, frames: int, device: torch.device) -> Verification:
    """Check every file of a run, then play on from a checkpoint for `frames`, and compare.

    The checkpoint is by default the newest that has another within `frames` after it, or the latest. Nothing
    is written into the run directory. `UserError`, or `DamagedError` that names the file.
    """
    run = RunDirectory.open(path)
    with run.held_still():
        with offering_a_whole_one(run):
            checked = check_run(run)
        skip = recorded_spec(run).spec.env.frame_skip
        steps = frames_to_steps(frames, frame_skip=skip)
        point = _point_to_play_from(run, checkpoint, steps)
        until = int(min(point.step + steps, steps_with_the_same_threads(run, point.step)))
        met = _checkpoints_within(run, point.step, until)
        stops = sorted({*met, until})
        name = point.checkpoint.name if point.checkpoint else None
        traces = [in_fresh_process(play_on, path, name, str(device), stops) for _ in range(2)]
        first, last = traces[0], traces[0].states[max(traces[0].states)]
        own_rows = {table: _own_rows(run, point, table) for table in REPEATED}
        compared = {table: min(len(first.rows[table]), len(rows)) for table, rows in own_rows.items()}
        return Verification(
            run=str(path),
            checked=checked,
            checkpoint=name or BEGINNING,
            from_frames=steps_to_frames(point.step, frame_skip=skip),
            to_frames=steps_to_frames(max(first.states), frame_skip=skip),
            seconds=first.seconds,
            state_parts=len(last),
            state_digest=digest_of_digests(last),
            recorded=tuple(directory.name for directory in met.values()),
            rows={table: len(rows) for table, rows in first.rows.items()},
            own_rows=compared,
            returns=first.returns,
            differences=(
                *_between(first, traces[1]),
                *_from_recorded(first, met),
                *_from_own_rows(first, own_rows),
            ),
            caveats=(
                *why_inexact(run, device),
                *_nothing_recorded(point, met, compared),
            ),
        )


def _point_to_play_from(run: RunDirectory, checkpoint: str | None, steps: int) -> Point:
    if checkpoint is not None:
        return beginning_of(run) if checkpoint == BEGINNING else point_of(run, checkpoint)
    store = CheckpointStore(run.checkpoints)
    for entry in reversed(store.catalog()):
        if _checkpoints_within(run, entry.step, entry.step + steps):
            return point_of(run, entry.path)
    return point_of(run)


def _checkpoints_within(run: RunDirectory, after: int, until: int) -> dict[int, Path]:
    """Return the checkpoints of steps in (after, until], by step."""
    store = CheckpointStore(run.checkpoints)
    return {entry.step: store.folder / entry.path for entry in store.catalog() if after < entry.step <= until}


def _between(first: Trace, second: Trace) -> Iterator[str]:
    for step, state in first.states.items():
        if part := first_difference(state, second.states.get(step, {})):
            yield f"played twice, {part} differs at step {step:,}"
            break
    for table in REPEATED:
        if first.rows[table] != second.rows[table]:
            yield f"played twice, {table}.csv differs"
    if first.returns != second.returns:
        yield f"played twice, an evaluation returns {first.returns} and {second.returns}"


def _from_recorded(trace: Trace, met: dict[int, Path]) -> Iterator[str]:
    for step, directory in met.items():
        state = trace.states.get(step)
        if state is None:
            yield f"the run saved step {step:,}, which was not met again"
        elif digest_of_digests(state) != read_manifest(directory)["state_digest"]:
            recorded, _ = load_checkpoint(directory)
            part = first_difference(digests_of(recorded), state)
            yield f"{part} is not what {directory.name} recorded"
            return


def _from_own_rows(trace: Trace, own_rows: dict[str, list[str]]) -> Iterator[str]:
    for table, rows in own_rows.items():
        for number, (played, own) in enumerate(zip(trace.rows[table], rows, strict=False), start=1):
            if played != own:
                yield f"{table}.csv, row {number} from there on: {own} in the run, {played} now"
                break


def first_difference(expected: dict[str, str], found: dict[str, str]) -> str | None:
    """Return the dotted path of the first part that differs, or that only one state has."""
    for path, digest in expected.items():
        if found.get(path) != digest:
            return path
    return next((path for path in found if path not in expected), None)


def _own_rows(run: RunDirectory, point: Point, table: str) -> list[str]:
    """Return the lines that the run wrote after a point; a final evaluation is no part of playing on."""
    path = run.tables / f"{table}.csv"
    with path.open("rb") as file:
        header = file.readline()
        file.seek(point.bookkeeping["tables"][table] if point.checkpoint else len(header))
        lines = file.read().decode().splitlines()
    if table != "eval_log":
        return lines
    kind = header.decode().strip().split(",").index("eval_type")
    return [line for line, row in zip(lines, csv.reader(lines), strict=True) if row[kind] != "final"]


def _nothing_recorded(point: Point, met: dict[int, Path], own_rows: dict[str, int]) -> Iterator[str]:
    if not met and not any(own_rows.values()):
        where = point.checkpoint.name if point.checkpoint else BEGINNING
        yield f"the run recorded nothing within these frames after {where} to compare with"
