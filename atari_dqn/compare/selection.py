"""Select the evaluation of a run that is its score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.compare.load import Evaluation, Run


@dataclass(frozen=True)
class NoScore:
    """The reason why a run has no score, worded to follow `seed 1`."""

    reason: str


Selection = Evaluation | NoScore

_ENDED = {"halted": "was halted", "interrupted": "was interrupted", "failed": "failed"}
"""How a run ended, in words, if it may have ended before its last frame."""


def select_last(runs: Sequence[Run], at_frames: int | None) -> dict[int, Selection]:
    """Select for each seed the evaluation at a frame, or else the final one, all at the same frame.

    Finished runs of unequal length are compared at the end of the shortest. Runs with several environments
    end up to one iteration after their budget, which does not count as another length.
    """
    if at_frames is not None:
        return {run.seed: select_at(run, at_frames) for run in runs}
    end = _shortest_end(runs)
    return {run.seed: _unfinished(run) if end is None else _final_at(run, end) for run in runs}


def select_at(run: Run, at_frames: int) -> Selection:
    """Select the latest evaluation that was due at or before a frame.

    Return `NoScore` if the run has not reached the frame, or if the evaluation is older than one evaluation
    period.
    """
    if run.reached_frames < at_frames:
        return _short(run, at_frames)
    before = _due(run, at_frames)
    if not before:
        return NoScore(f"was not evaluated by frame {at_frames:,}")
    if at_frames - before[-1].env_frames > run.evaluation_period_frames:
        return NoScore(f"was last evaluated at {before[-1].env_frames:,} frames")
    return _if_a_number(before[-1])


def select_best(runs: Sequence[Run], at_frames: int | None) -> dict[int, Selection]:
    """Select for each seed the best full or final evaluation: a maximum, biased upwards.

    Only evaluations up to the frame of `select_last` count: a longer run would have more to choose from.
    """
    if at_frames is not None:
        return {run.seed: _best_at(run, at_frames) for run in runs}
    end = _shortest_end(runs)
    return {
        run.seed: _best_at(run, end) if end is not None and run.finished else _unfinished(run) for run in runs
    }


def _best_at(run: Run, end: int) -> Selection:
    if run.reached_frames < end:
        return _short(run, end)
    within = [each for each in _due(run, end) if each.kind != "light"]
    numbers = [evaluation for evaluation in within if math.isfinite(evaluation.mean_return)]
    if len(numbers) < len(within):
        return NoScore(
            f"has {len(within) - len(numbers)} of {len(within)} full evaluations that are not a number"
        )
    return (
        max(numbers, key=lambda evaluation: evaluation.mean_return)
        if numbers
        else NoScore("has no full evaluation")
    )


def _final_at(run: Run, env_frames: int) -> Selection:
    if not run.finished:
        return _unfinished(run)
    at_end = [each for each in _due(run, env_frames) if each.env_frames >= env_frames]
    full = [each for each in at_end if each.kind != "light"]
    return _if_a_number(full[-1]) if full else NoScore(f"has no full evaluation at {env_frames:,} frames")


def _due(run: Run, end: int) -> list[Evaluation]:
    """Return the evaluations that were due at or before a frame; they are late by less than an iteration."""
    return [each for each in run.evaluations if each.env_frames < end + run.iteration_frames]


def _shortest_end(runs: Sequence[Run]) -> int | None:
    """Return the frame of the earliest final evaluation; None if no run is finished."""
    return min((run.final_frames for run in runs if run.finished), default=None)


def _short(run: Run, at_frames: int) -> NoScore:
    ended = f": it {_ENDED[run.ending]}" if run.ending in _ENDED else ""
    return NoScore(f"has {run.reached_frames:,} of {at_frames:,} frames{ended}")


def _unfinished(run: Run) -> NoScore:
    progress = f"{run.reached_frames:,} of {run.total_frames:,} frames"
    if run.ending in _ENDED:
        return NoScore(f"{_ENDED[run.ending]} at {progress}, before its final evaluation")
    return NoScore(f"has no final evaluation yet: {progress}")


def _if_a_number(evaluation: Evaluation) -> Selection:
    if math.isfinite(evaluation.mean_return):
        return evaluation
    return NoScore(f"has a score at {evaluation.env_frames:,} frames that is not a number")
