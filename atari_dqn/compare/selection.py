"""Which evaluation of a run is its score, or in words why none is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.compare.load import Evaluation, Run


@dataclass(frozen=True)
class Absent:
    """There is no score to take."""

    reason: str


Choice = Evaluation | Absent


def last_choices(runs: Sequence[Run], at_frames: int | None) -> dict[int, Choice]:
    """Return each seed's score at a frame, or of its final evaluation, all at the same frame.

    Where finished runs are of unequal length the shortest decides. Runs of several environments end a few
    frames after their budget, some sooner than others: that is no other length.
    """
    if at_frames is not None:
        return {run.seed: last_at(run, at_frames) for run in runs}
    ends = [final.env_frames for run in runs if (final := _final(run)) is not None]
    return {run.seed: _final_at(run, min(ends)) if ends else _unfinished(run) for run in runs}


def last_at(run: Run, at_frames: int) -> Choice:
    """Return the latest evaluation that was due at or before a frame that the run has reached.

    One older than the run's period of evaluations is of another time, and not taken.
    """
    if run.reached_frames < at_frames:
        return _short(run, at_frames)
    before = [each for each in run.evaluations if each.env_frames < at_frames + run.iteration_frames]
    if not before:
        return Absent(f"was not evaluated by frame {at_frames:,}")
    if at_frames - before[-1].env_frames > run.evaluation_period_frames:
        return Absent(f"was last evaluated at {before[-1].env_frames:,} frames")
    return _if_a_number(before[-1])


def best_choices(runs: Sequence[Run], at_frames: int | None) -> dict[int, Choice]:
    """Return each seed's best full or final evaluation up to a frame: a maximum, biased upwards."""
    return {run.seed: _best(run, at_frames) for run in runs}


def _best(run: Run, at_frames: int | None) -> Choice:
    if at_frames is None and not run.finished:
        return _unfinished(run)
    if at_frames is not None and run.reached_frames < at_frames:
        return _short(run, at_frames)
    within = [
        evaluation
        for evaluation in run.evaluations
        if evaluation.kind != "light" and (at_frames is None or evaluation.env_frames <= at_frames)
    ]
    numbers = [evaluation for evaluation in within if math.isfinite(evaluation.mean_return)]
    if len(numbers) < len(within):
        return Absent(
            f"has {len(within) - len(numbers)} of {len(within)} full evaluations that are not a number"
        )
    return (
        max(numbers, key=lambda evaluation: evaluation.mean_return)
        if numbers
        else Absent("has no full evaluation")
    )


def _final_at(run: Run, env_frames: int) -> Choice:
    if not run.finished:
        return _unfinished(run)
    due = range(env_frames, env_frames + run.iteration_frames)
    full = [each for each in run.evaluations if each.kind != "light" and each.env_frames in due]
    return _if_a_number(full[-1]) if full else Absent(f"has no full evaluation at {env_frames:,} frames")


def _final(run: Run) -> Evaluation | None:
    return next((each for each in reversed(run.evaluations) if each.kind == "final"), None)


def _short(run: Run, at_frames: int) -> Absent:
    return Absent(f"has {run.reached_frames:,} of {at_frames:,} frames")


def _unfinished(run: Run) -> Absent:
    return Absent(f"has no final evaluation yet: {run.reached_frames:,} of {run.total_frames:,} frames")


def _if_a_number(evaluation: Evaluation) -> Choice:
    if math.isfinite(evaluation.mean_return):
        return evaluation
    return Absent(f"has a score at {evaluation.env_frames:,} frames that is not a number")
