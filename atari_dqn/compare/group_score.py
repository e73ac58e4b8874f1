"""Compute the score of a group: one number for each seed, and statistics over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from atari_dqn.compare.load import Evaluation
from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.reference.studies import HumanRandom
from atari_dqn.compare.selection import NoScore, Selection
from atari_dqn.compare.statistics import Estimate, estimates, iqm, mean, median_run

_STATISTICS = {"mean": mean, "median": median_run, "iqm": iqm}


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """The scores of the seeds of a group with their statistics, which are empty without a score."""

    evaluations: Mapping[int, Evaluation]
    """The evaluation that is the score, by seed."""
    absent: Mapping[int, str]
    """The reason why a seed has no score, by seed."""
    estimates: Mapping[str, Estimate]
    """`mean`, `median` and `iqm`."""
    quartiles: tuple[float, float] | None
    """First and third quartile of the scores; None for fewer than two scores."""

    @property
    def n(self) -> int:
        """Number of seeds with a score."""
        return len(self.evaluations)

    @property
    def values(self) -> list[float]:
        """The scores, in the order of seeds."""
        return [evaluation.mean_return for evaluation in self.evaluations.values()]

    @property
    def env_frames(self) -> int:
        """Emulator frames of the earliest of the evaluations; 0 without a score."""
        return min((evaluation.env_frames for evaluation in self.evaluations.values()), default=0)

    @property
    def protocol_digests(self) -> list[str]:
        """The distinct protocol fingerprints."""
        return list(dict.fromkeys(each.protocol_digest for each in self.evaluations.values()))

    @property
    def frame_caps(self) -> int:
        """Number of games that the frame cap truncated."""
        return sum(evaluation.frame_caps for evaluation in self.evaluations.values())

    @property
    def mark(self) -> str:
        """The mark after each figure of the score: `†` if the cap truncated a game, else empty."""
        return MARK if self.frame_caps else ""

    def is_covered_by(self, human: HumanRandom) -> bool:
        """Return whether the score may be normalised by a human score."""
        return all(evaluation.is_covered_by(human) for evaluation in self.evaluations.values())

    @property
    def comparable(self) -> bool:
        """Whether the score may be aggregated, and compared with other groups and with published scores."""
        found = [evaluation.comparable for evaluation in self.evaluations.values()]
        return bool(found) and all(found)


def group_score(selected: Mapping[int, Selection]) -> GroupScore:
    """Compute the score of a group from the selected evaluation of each seed."""
    evaluations = {seed: each for seed, each in selected.items() if isinstance(each, Evaluation)}
    values = np.array([[evaluation.mean_return] for evaluation in evaluations.values()])
    return GroupScore(
        evaluations=evaluations,
        absent={seed: each.reason for seed, each in selected.items() if isinstance(each, NoScore)},
        estimates=estimates(values, _STATISTICS) if evaluations else {},
        quartiles=_quartiles(values) if len(evaluations) > 1 else None,
    )


def _quartiles(values: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(values, [25, 75])
    return float(low), float(high)
