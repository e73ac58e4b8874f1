"""The steps at which a trial is rated, and the median rule by which a poor one ends early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from atari_dqn.formatting import plural
from atari_dqn.scale.tuning.study import Trial, first_complete
from atari_dqn.scale.tuning.tune import Pruning, Tune


@dataclass(frozen=True)
class Step:
    """A point at which the objective is computed, over the first seeds at a frame."""

    seeds: int
    """Number of seeds, in their order, over which it is computed."""
    at_frames: int

    def __str__(self) -> str:
        return f"{plural(self.seeds, 'seed')} at {self.at_frames:,} frames"


def steps_of(tune: Tune) -> tuple[Step, ...]:
    """Return the steps of a trial: each full evaluation of the first seed, then the end of each other seed.

    The last step is the objective.
    """
    first = [Step(1, frames) for frames in tune.evaluation_frames]
    return (*first, *(Step(seeds, tune.objective.at_frames) for seeds in range(2, len(tune.seeds) + 1)))


def is_pruned(
    values: Sequence[float], earlier: Sequence[Trial], *, maximize: bool, startup_trials: int
) -> bool:
    """Return whether a trial ends early: its best value so far is worse than the median of complete trials.

    `values`: of the trial at its steps so far. The median is over the complete trials among `earlier` at the
    last of these steps, each set of searched values once; the rule of Optuna's MedianPruner.
    """
    step = len(values) - 1
    complete = first_complete(earlier)
    others = [trial.steps[step] for trial in complete if step in trial.steps]
    if len(complete) < startup_trials or not others:
        return False
    best = max(values) if maximize else min(values)
    return best < median(others) if maximize else best > median(others)


def may_prune(pruning: Pruning, step: Step) -> bool:
    """Return whether a trial may end at a step."""
    return step.at_frames >= pruning.warmup_frames
