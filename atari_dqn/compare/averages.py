"""Average the scores of a group over the frames over which a published figure is averaged."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from atari_dqn.compare.load import Run
from atari_dqn.compare.reference.match import span_text
from atari_dqn.compare.reference.studies import Measure

Window = tuple[int, int]
"""Emulator frames, from and to."""


def averaged(runs: Sequence[Run], seeds: Collection[int], measure: Measure, window: Window) -> float | str:
    """Compute the mean over seeds of each run's mean in the window, or return why there is none, as text."""
    own = [run for run in runs if run.seed in seeds]
    if measure == "training":
        falls_until = max(map(_epsilon_falls_until, own))
        if window[0] < falls_until:
            return f"games while ε fell, until {falls_until:,} frames"
    means = [_training(run, window) if measure == "training" else _evaluations(run, window) for run in own]
    return span_text(window) if any(map(math.isnan, means)) else sum(means) / len(means)


def _epsilon_falls_until(run: Run) -> int:
    """Compute the emulator frames at which ε has its last value."""
    prefill = int(run.values["replay.prefill_steps"]) * int(run.values["env.frame_skip"])
    return prefill + int(run.values["exploration.epsilon_decay_frames"])


def _evaluations(run: Run, window: Window) -> float:
    """Compute the mean of the evaluations in a window; NaN if the run has not been evaluated to its end."""
    begin, end = window
    late = end + run.iteration_frames  # an evaluation may come one iteration after it is due
    found = [each.mean_return for each in run.evaluations if begin <= each.env_frames < late]
    return float(np.mean(found)) if found and run.evaluated_frames >= end else math.nan


def _training(run: Run, window: Window) -> float:
    """Compute the mean return of the games that ended in a window; NaN if they are not all known."""
    if run.training_games is None or run.reached_frames < window[1]:
        return math.nan
    first, last = np.searchsorted(run.training_games.frames, window, side="right")
    return float(run.training_games.values[first:last].mean()) if last > first else math.nan
