"""What the scores of two groups of one game tell: that they are the same, that they differ, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atari_dqn.comparison.group import Group, Method
from atari_dqn.comparison.load import Evaluation, Run
from atari_dqn.comparison.score import GroupScore

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
    """Return what tells a group from those before it: from the first, or from one that is identical.

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
    ours, theirs = ({run.seed: _returns(run.evaluations) for run in runs} for runs in (left, right))
    return ours == theirs and all(ours.values())


def _returns(evaluations: Sequence[Evaluation]) -> list[tuple[int, str, int, str]]:
    """Return what is compared of evaluations; returns as text, so that NaN equals itself."""
    return [(each.env_frames, each.kind, each.episodes, repr(each.mean_return)) for each in evaluations]


def _intervals(left: GroupScore, right: GroupScore) -> str:
    if not (left.n and right.n and left.comparable and right.comparable):
        return ""
    ours, theirs = left.estimates["mean"].interval, right.estimates["mean"].interval
    if ours is None or theirs is None:
        return ""
    return OVERLAP if ours.low <= theirs.high and theirs.low <= ours.high else APART
