"""Average the scores of a group over the frames over which a published figure is averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from atari_dqn.compare.load import Evaluation, Run
from atari_dqn.compare.reference.match import frames_text
from atari_dqn.compare.reference.studies import Measure

Window = tuple[int, int]
"""Emulator frames, from and to."""


def mean_in_window(
    runs: Sequence[Run], measure: Measure, window: Window, *, cap_reached: bool
) -> float | str:
    """Compute the mean over runs of each one's mean score in a window; NaN if one ends too early.

    If the cap truncated games, or ε was still decreasing, there is none, and this is described instead.
    `cap_reached`: whether the cap truncated games of the score itself. Then the cap is compared with that of
    the figure anyway, and truncated games within the window are no reason.
    """
    if measure == "evaluation" and not cap_reached and any(_were_cut(run, window) for run in runs):
        return f"games cut within {frames_text(window)}"
    if measure == "training":
        falls_until = max(map(_epsilon_end_frames, runs))
        if window[0] < falls_until:
            return f"games while ε fell, until {falls_until:,} frames"
    means = [
        _training_mean(run, window) if measure == "training" else _evaluation_mean(run, window)
        for run in runs
    ]
    return sum(means) / len(means)


def _epsilon_end_frames(run: Run) -> int:
    """Compute the number of emulator frames after which ε has its final value."""
    values = run.values
    prefill = int(values["replay.prefill_steps"]) * int(values["env.frame_skip"])
    falls = values.get("exploration.epsilon_start") != values["exploration.epsilon_end"]
    return prefill + (int(values["exploration.epsilon_decay_frames"]) if falls else 0)


def _within(run: Run, window: Window) -> list[Evaluation]:
    begin, end = window
    limit = end + run.iteration_frames  # an evaluation may come one iteration after it is due
    return [each for each in run.evaluations if begin <= each.env_frames < limit]


def _were_cut(run: Run, window: Window) -> bool:
    """Return whether the frame cap cut games of an evaluation in a window."""
    return any(each.frame_caps for each in _within(run, window))


def _evaluation_mean(run: Run, window: Window) -> float:
    """Compute the mean of the evaluations in a window; NaN if there are none, or the last are missing."""
    found = [each.mean_return for each in _within(run, window)]
    return float(np.mean(found)) if found and run.evaluated_frames >= window[1] else math.nan


def _training_mean(run: Run, window: Window) -> float:
    """Compute the mean return of games that ended in a window; NaN if there are none or some are unknown."""
    if run.training_games is None or run.reached_frames < window[1]:
        return math.nan
    first, last = np.searchsorted(run.training_games.frames, window, side="right")
    return float(run.training_games.values[first:last].mean()) if last > first else math.nan
