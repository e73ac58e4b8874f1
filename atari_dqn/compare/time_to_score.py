"""How soon runs reach a score: frames and hours until the first evaluation that has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.compare.load import Run

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Pace:
    """A group's way to a score."""

    score: float
    reached: int
    """Runs that came to it, of `runs`."""
    runs: int
    median_frames: float
    """Over all runs, where one that did not come to it counts as never: infinite if half of them did not."""
    median_hours: float
    """Of training, evaluation and saving; NaN where the run's table of times does not say."""


def pace(runs: Sequence[Run], score: float, *, comparable_only: bool = False) -> Pace:
    """Return how soon runs reach `score` in an evaluation of any kind.

    `comparable_only`: evaluations count whose games may be compared with a person's.
    """
    frames = [_first_frames(run, score, comparable_only=comparable_only) for run in runs]
    hours = [_hours(run, first) for run, first in zip(runs, frames, strict=True)]
    return Pace(
        score=score,
        reached=sum(math.isfinite(first) for first in frames),
        runs=len(runs),
        median_frames=_median(frames),
        median_hours=_median(hours),
    )


def _first_frames(run: Run, score: float, *, comparable_only: bool) -> float:
    counting = (each for each in run.evaluations if each.comparable or not comparable_only)
    reached = (each.env_frames for each in counting if each.mean_return >= score)
    return float(next(reached, math.inf))


def _hours(run: Run, frames: float) -> float:
    return run.elapsed_seconds.at(int(frames)) / _SECONDS_PER_HOUR if math.isfinite(frames) else math.inf


def _median(values: Sequence[float]) -> float:
    """Return the median; NaN if one is NaN, infinite if the middle is."""
    if any(math.isnan(value) for value in values):
        return math.nan
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
