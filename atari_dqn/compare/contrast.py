"""Compare two groups on one game: identical evaluations, or the difference of their means with its interval.

A difference is shown if the interval excludes 0. Scores of different tracks, frames or protocols are not
compared.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.compare.group import Group, Method
from atari_dqn.compare.group_score import GroupScore
from atari_dqn.compare.load import Evaluation, Run
from atari_dqn.compare.protocol_differences import ScoredGroup, obstacles, protocol_differences
from atari_dqn.compare.statistics import Estimate, column, difference
from atari_dqn.formatting import score

Measured = tuple[int, str, int, str]
"""Frames, kind, number of episodes and mean return of an evaluation."""

IDENTICAL = "identical in every evaluation"
SHOWN = "a difference is shown"
NOT_SHOWN = "no difference is shown"
NO_INTERVAL = "no interval: within each group all seeds have the same score"
NOT_COMPARED = "not compared"


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The result of comparing a group with another group of the same game."""

    to: Method
    is_first: bool
    """Whether the other group is the first of its game."""
    finding: str
    increment: Estimate | None = None
    """The mean minus that of the other group, with its interval, if the finding is `SHOWN` or `NOT_SHOWN`;
    without it if it is `NO_INTERVAL`."""
    differences: tuple[str, ...] = ()
    """What differs, if the finding is `NOT_COMPARED`: `obstacles`."""

    @property
    def statement(self) -> str:
        """The finding, with the difference of the means or what differs."""
        return ": ".join(filter(None, (self.finding, self._increment, "; ".join(self.differences))))

    @property
    def _increment(self) -> str:
        """The difference of the means with its interval, if it has one, as text; empty without one."""
        if self.increment is None:
            return ""
        if self.increment.interval is None:
            return score(self.increment.value)
        low, high = self.increment.interval.low, self.increment.interval.high
        return f"{score(self.increment.value)} [{score(low)}, {score(high)}]"

    def __str__(self) -> str:
        other = "the first group" if self.is_first else self.to.label
        if self.finding == IDENTICAL:
            return f"{IDENTICAL} to {other}"
        if self.finding == NOT_COMPARED:
            return f"{NOT_COMPARED} with {other}: {'; '.join(self.differences)}"
        return f"mean minus that of {other}: {self._increment}: {self.finding}"


def contrast(group: Group, last: GroupScore, earlier: Sequence[ScoredGroup]) -> Contrast | None:
    """Compare a group with the first earlier group of identical evaluations; if none, with the first group.

    `last`: the score of the group. The finding is `NOT_COMPARED` if the first group has another track, other
    frames or another protocol. Return None for the first group, and if one of the two has no score, has a
    single seed, or is not comparable because the frame cap truncated its games.
    """
    for place, (other, other_last) in enumerate(earlier):
        if identical(group.runs, other.runs) and not protocol_differences((group, last), (other, other_last)):
            return Contrast(to=other.method, is_first=place == 0, finding=IDENTICAL)
    if not earlier:
        return None
    first, first_last = earlier[0]
    if not (last.n and first_last.n and last.comparable and first_last.comparable):
        return None
    differences = obstacles((group, last), (first, first_last))
    if differences:
        return Contrast(to=first.method, is_first=True, finding=NOT_COMPARED, differences=differences)
    if min(last.n, first_last.n) == 1:
        return None
    increment = difference(column(last.values), column(first_last.values))
    if increment.interval is None:
        return Contrast(to=first.method, is_first=True, finding=NO_INTERVAL, increment=increment)
    is_shown = not increment.interval.low <= 0 <= increment.interval.high
    finding = SHOWN if is_shown else NOT_SHOWN
    return Contrast(to=first.method, is_first=True, finding=finding, increment=increment)


def identical(left: Sequence[Run], right: Sequence[Run]) -> bool:
    """Return whether two groups have the same seeds and, for each seed, equal evaluations."""
    ours, theirs = ({run.seed: run.evaluations for run in runs} for runs in (left, right))
    return ours.keys() == theirs.keys() and all(_equal(ours[seed], theirs[seed]) for seed in ours)


def identical_seeds(runs: Sequence[Run]) -> list[list[int]]:
    """Group the seeds whose evaluations are all equal; seeds that equal no other are left out."""
    seeds: dict[tuple[Measured, ...], list[int]] = {}
    for run in runs:
        if run.evaluations:
            seeds.setdefault(tuple(map(_measured, run.evaluations)), []).append(run.seed)
    return [alike for alike in seeds.values() if len(alike) > 1]


def _equal(left: Sequence[Evaluation], right: Sequence[Evaluation]) -> bool:
    """Return whether two sequences of evaluations are equal and not empty."""
    same_number = 0 < len(left) == len(right)
    return same_number and all(map(operator.eq, map(_measured, left), map(_measured, right)))


def _measured(evaluation: Evaluation) -> Measured:
    """Return the values of an evaluation that are compared; the return as text, so that NaN equals NaN."""
    return evaluation.env_frames, evaluation.kind, evaluation.episodes, repr(evaluation.mean_return)
