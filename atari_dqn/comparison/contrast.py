"""Comparing the scores of two groups of one game: identical, intervals that overlap, or intervals apart."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.comparison.group import Group, Method
from atari_dqn.comparison.load import Evaluation, Run
from atari_dqn.comparison.score import GroupScore

Measured = tuple[int, str, int, str]
"""Frames, kind, episodes and mean return."""

IDENTICAL = "identical in every evaluation"
OVERLAP = "the intervals overlap"
APART = "the intervals do not overlap"
_SENTENCES = {
    IDENTICAL: f"{IDENTICAL} to {{other}}",
    OVERLAP: f"{OVERLAP} those of {{other}}: no difference is shown",
    APART: f"{APART} those of {{other}}",
}


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A finding about a group and another one of its game."""

    to: Method
    is_first: bool
    """Whether the other one is the first of its game."""
    finding: str

    def __str__(self) -> str:
        other = "the first group" if self.is_first else self.to.label
        return _SENTENCES[self.finding].format(other=other)


def contrast(group: Group, last: GroupScore, earlier: Sequence[tuple[Group, GroupScore]]) -> Contrast | None:
    """Return how a group differs from the first of its game, or that it is identical to an earlier one.

    None for the first group, and where there are no intervals, or a cap cut games of one of the two.
    """
    for place, (other, _) in enumerate(earlier):
        if identical(group.runs, other.runs):
            return Contrast(to=other.method, is_first=place == 0, finding=IDENTICAL)
    for other, other_last in earlier[:1]:
        finding = _intervals(last, other_last)
        if finding:
            return Contrast(to=other.method, is_first=True, finding=finding)
    return None


def identical(left: Sequence[Run], right: Sequence[Run]) -> bool:
    """Return whether two groups have the same seeds, with the same returns in every evaluation."""
    ours, theirs = ({run.seed: run.evaluations for run in runs} for runs in (left, right))
    return ours.keys() == theirs.keys() and all(_alike(ours[seed], theirs[seed]) for seed in ours)


def identical_seeds(runs: Sequence[Run]) -> list[list[int]]:
    """Return those seeds of a group that have the same returns in every evaluation, together."""
    seeds: dict[tuple[Measured, ...], list[int]] = {}
    for run in runs:
        if run.evaluations:
            seeds.setdefault(tuple(map(_measured, run.evaluations)), []).append(run.seed)
    return [alike for alike in seeds.values() if len(alike) > 1]


def _alike(left: Sequence[Evaluation], right: Sequence[Evaluation]) -> bool:
    """Return whether evaluations are the same, and there are any; most differ in the first few."""
    same_number = 0 < len(left) == len(right)
    return same_number and all(map(operator.eq, map(_measured, left), map(_measured, right)))


def _measured(evaluation: Evaluation) -> Measured:
    """Return what is compared of an evaluation; its return as text, so that NaN equals itself."""
    return evaluation.env_frames, evaluation.kind, evaluation.episodes, repr(evaluation.mean_return)


def _intervals(left: GroupScore, right: GroupScore) -> str:
    if not (left.n and right.n and left.comparable and right.comparable):
        return ""
    ours, theirs = left.estimates["mean"].interval, right.estimates["mean"].interval
    if ours is None or theirs is None:
        return ""
    return OVERLAP if ours.low <= theirs.high and theirs.low <= ours.high else APART
