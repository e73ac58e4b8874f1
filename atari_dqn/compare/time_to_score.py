"""Compute the time to a score: frames and hours until the first evaluation that reaches it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from atari_dqn.compare.load import Evaluation, Run
from atari_dqn.compare.reference.studies import HumanRandom

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class TimeToScore:
    """The time that the runs of a group take to reach a score."""

    score: float
    reached: int
    """Number of runs that reach it, out of `runs`."""
    runs: int
    median_frames: float
    """Emulator frames, median over all runs; a run that does not reach the score counts as infinite."""
    median_hours: float
    """Hours of training, evaluation and saving; NaN if throughput_log does not reach that far back."""


def time_to_score(runs: Sequence[Run], score: float, *, at_frames: int | None = None) -> TimeToScore:
    """Compute how many frames and hours runs take to reach `score` in an evaluation of any kind.

    `at_frames`: the frame up to which runs are compared; None for their ends.
    """
    return _time(runs, score, at_frames, lambda _: True)


def time_to_human(runs: Sequence[Run], human: HumanRandom, *, at_frames: int | None = None) -> TimeToScore:
    """Compute the time to the human score in evaluations that it covers; see `time_to_score`."""
    return _time(runs, human.human, at_frames, lambda evaluation: evaluation.is_covered_by(human))


def _time(
    runs: Sequence[Run], score: float, at_frames: int | None, counts: Callable[[Evaluation], bool]
) -> TimeToScore:
    most = math.inf if at_frames is None else at_frames
    frames = [_first_frames(run, score, most, counts) for run in runs]
    hours = [_hours(run, first) for run, first in zip(runs, frames, strict=True)]
    return TimeToScore(
        score=score,
        reached=sum(math.isfinite(first) for first in frames),
        runs=len(runs),
        median_frames=_median(frames),
        median_hours=_median(hours),
    )


def _first_frames(run: Run, score: float, most: float, counts: Callable[[Evaluation], bool]) -> float:
    counting = filter(counts, run.evaluations)
    late = most + run.iteration_frames  # an evaluation may come one iteration after it is due
    reached = (each.env_frames for each in counting if each.mean_return >= score and each.env_frames < late)
    return float(next(reached, math.inf))


def _hours(run: Run, frames: float) -> float:
    return run.elapsed_seconds.at(int(frames)) / _SECONDS_PER_HOUR if math.isfinite(frames) else math.inf


def _median(values: Sequence[float]) -> float:
    """Return the median; NaN if a value is NaN, infinite if the middle one is infinite."""
    if any(math.isnan(value) for value in values):
        return math.nan
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
