"""Read the sections of a tune file that say how to search: objective, pruning, sampler, budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from atari_dqn.scale.tuning.fields import Fields
from atari_dqn.scale.tuning.scores import SCORES, score_problems
from atari_dqn.scale.tuning.tune import Budget, Direction, Objective, Pruning, Sampler, Statistic
from atari_dqn.spec.errors import Fault
from atari_dqn.spec.keys import Values

_MOST_SHOWN = 5
_MOST_TRIALS_AT_ONCE = 1_000
_MOST_EVALUATIONS = 100_000


def read_objective(
    path: Path, table: Mapping[str, Any], fixed: Values, games: Sequence[str]
) -> tuple[Objective, tuple[int, ...], list[Fault]]:
    """Read the objective; return it with the frames of the full evaluations up to its own.

    `fixed`: the complete base spec; empty if it is not valid, which is reported.
    """
    fields = Fields(path, "objective", table, ("score", "statistic", "at_frames", "direction"))
    statistic: Statistic = fields.word("statistic", "mean", get_args(Statistic))
    direction: Direction = fields.word("direction", "maximize", get_args(Direction))
    objective = Objective(
        score=fields.word("score", "mean_return", tuple(SCORES)),
        statistic=statistic,
        at_frames=fields.integer("at_frames", int(fixed.get("training.total_frames", 1)), low=1),
        direction=direction,
    )
    frames: tuple[int, ...] = ()
    if fixed and not fields.faults:
        for problem in score_problems(objective.score, games, int(fixed["evaluation.max_episode_frames"])):
            fields.fault("score", problem)
        excess = _excess_of_evaluations(path, fixed)
        if excess is not None:
            return objective, (), [*fields.faults, excess]
        evaluated = _evaluation_frames(fixed)
        if objective.at_frames not in evaluated:
            fields.fault("at_frames", _never_evaluated(objective.at_frames, fixed))
        frames = tuple(each for each in evaluated if each <= objective.at_frames)
    return objective, frames, fields.faults


def read_pruning(
    path: Path, table: Mapping[str, Any], frames: Sequence[int], seeds: int
) -> tuple[Pruning | None, list[Fault]]:
    """Read when trials are pruned; None without the section. `frames`: of the full evaluations."""
    fields = Fields(path, "pruning", table, ("startup_trials", "warmup_frames"))
    if not fields.is_written:
        return None, []
    pruning = Pruning(
        startup_trials=fields.integer("startup_trials", 5, low=1),
        warmup_frames=fields.integer("warmup_frames", 0, low=0),
    )
    early = [each for each in frames[:-1] if each >= pruning.warmup_frames]
    if frames and seeds < 2 and not early and not fields.faults:
        problem = (
            f"nothing can be pruned: there is one seed, and no full evaluation from frame "
            f"{pruning.warmup_frames:,} until {frames[-1]:,}; raise seeds, lower "
            "evaluation.full_period_frames, or remove the section"
        )
        return pruning, [Fault(str(path), "pruning", problem)]
    return pruning, fields.faults


def read_sampler(path: Path, table: Mapping[str, Any]) -> tuple[Sampler, list[Fault]]:
    """Read how values are suggested."""
    fields = Fields(path, "sampler", table, ("seed", "random_trials", "trials_at_once"))
    sampler = Sampler(
        seed=fields.integer("seed", 0, low=0),
        random_trials=fields.integer("random_trials", 10, low=1),
        trials_at_once=fields.integer("trials_at_once", 1, low=1, high=_MOST_TRIALS_AT_ONCE),
    )
    return sampler, fields.faults


def read_budget(path: Path, table: Mapping[str, Any]) -> tuple[Budget, list[Fault]]:
    """Read when no further trial begins."""
    fields = Fields(path, "budget", table, ("trials", "hours"))
    budget = Budget(
        trials=fields.integer("trials", 1, low=1) if "trials" in fields else None,
        hours=fields.positive("hours", 1.0) if "hours" in fields else None,
    )
    if not fields.faults and budget == Budget(trials=None, hours=None):
        problem = "has neither trials nor hours; expected one of them, or both"
        return budget, [Fault(str(path), "budget", problem)]
    return budget, fields.faults


def _excess_of_evaluations(path: Path, fixed: Values) -> Fault | None:
    """Return a fault if a run has more full evaluations than a tune can record; None otherwise."""
    period, total = int(fixed["evaluation.full_period_frames"]), int(fixed["training.total_frames"])
    number = total // period
    if number <= _MOST_EVALUATIONS:
        return None
    problem = f"makes {number:,} full evaluations in {total:,} frames; expected at most {_MOST_EVALUATIONS:,}"
    return Fault(str(path), "evaluation.full_period_frames", problem)


def _evaluation_frames(fixed: Values) -> list[int]:
    """Return the emulator frames of all full evaluations of a run, the final one included."""
    period, total = int(fixed["evaluation.full_period_frames"]), int(fixed["training.total_frames"])
    return list(dict.fromkeys([*range(period, total, period), total]))


def _never_evaluated(at_frames: int, fixed: Values) -> str:
    evaluated = _evaluation_frames(fixed)
    near = sorted(evaluated, key=lambda frames: abs(frames - at_frames))[:_MOST_SHOWN]
    shown = ", ".join(f"{frames:,}" for frames in sorted(near)) + (
        ", …" if len(near) < len(evaluated) else ""
    )
    return (
        f"found {at_frames:,}, at which the spec has no full evaluation; expected one of {shown} "
        "(evaluation.full_period_frames, training.total_frames)"
    )
