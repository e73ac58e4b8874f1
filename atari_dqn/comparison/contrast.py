"""What the scores of two groups of one game tell: that they are the same, that they differ, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.comparison.group import Group, Method
from atari_dqn.comparison.load import Evaluation, Run
from atari_dqn.comparison.score import GroupScore

IDENTICAL = "identical in every evaluation"
OVERLAP = "the intervals overlap: no difference is shown"
APART = "the intervals do not overlap"


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A finding about a group and another one of its game."""

    to: Method
    finding: str


def contrast(group: Group, last: GroupScore, earlier: Sequence[tuple[Group, GroupScore]]) -> Contrast | None:
    """Return what tells a group from those before it: from the first, or from one that is identical.

    None for the first group, and where the scores have no intervals.
    """
    for other, _ in earlier:
        if identical(group.runs, other.runs):
            return Contrast(to=other.method, finding=IDENTICAL)
    for other, other_last in earlier[:1]:
        finding = _intervals(last, other_last)
        if finding:
            return Contrast(to=other.method, finding=finding)
    return None


def identical(left: Sequence[Run], right: Sequence[Run]) -> bool:
    """Return whether two groups have the same seeds, with the same returns in every evaluation."""
    ours, theirs = ({run.seed: _returns(run.evaluations) for run in runs} for runs in (left, right))
    return ours == theirs and all(ours.values())


def _returns(evaluations: Sequence[Evaluation]) -> list[tuple[int, str, int, str]]:
    """Return what is compared of evaluations; returns as text, so that NaN equals itself."""
    return [(each.env_frames, each.kind, each.episodes, repr(each.mean_return)) for each in evaluations]


def _intervals(left: GroupScore, right: GroupScore) -> str:
    if not (left.n and right.n):
        return ""
    ours, theirs = left.estimates["mean"].interval, right.estimates["mean"].interval
    if ours is None or theirs is None:
        return ""
    return OVERLAP if ours.low <= theirs.high and theirs.low <= ours.high else APART
