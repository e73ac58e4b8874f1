"""A group's score: one number a seed, and the statistics over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from atari_dqn.compare.load import Evaluation
from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.selection import Absent, Choice
from atari_dqn.compare.statistics import Estimate, estimates, iqm, mean, median_run

_STATISTICS = {"mean": mean, "median": median_run, "iqm": iqm}


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """Scores of a group's seeds and what they come to. Without a score there are no statistics."""

    evaluations: Mapping[int, Evaluation]
    """By seed."""
    absent: Mapping[int, str]
    """Why seeds have no score."""
    estimates: Mapping[str, Estimate]
    """`mean`, `median` and `iqm`."""
    quartiles: tuple[float, float] | None
    """Of the scores; None for fewer than two."""

    @property
    def n(self) -> int:
        """Seeds with a score."""
        return len(self.evaluations)

    @property
    def values(self) -> list[float]:
        """The scores, by seed."""
        return [evaluation.mean_return for evaluation in self.evaluations.values()]

    @property
    def env_frames(self) -> int:
        """The frames that every seed with a score has had."""
        return min((evaluation.env_frames for evaluation in self.evaluations.values()), default=0)

    @property
    def protocol_digests(self) -> list[str]:
        """The fingerprints, each once."""
        return list(dict.fromkeys(each.protocol_digest for each in self.evaluations.values()))

    @property
    def frame_caps(self) -> int:
        """Games that the cap cut."""
        return sum(evaluation.frame_caps for evaluation in self.evaluations.values())

    @property
    def mark(self) -> str:
        """What stands behind each figure of the score: `†` where the cap cut a game."""
        return MARK if self.frame_caps else ""

    @property
    def comparable(self) -> bool:
        """Whether the score may be normalised, aggregated and compared with published ones."""
        return all(evaluation.comparable for evaluation in self.evaluations.values())


def group_score(choices: Mapping[int, Choice]) -> GroupScore:
    """Return the score of a group from each seed's."""
    evaluations = {seed: choice for seed, choice in choices.items() if isinstance(choice, Evaluation)}
    values = np.array([[evaluation.mean_return] for evaluation in evaluations.values()])
    return GroupScore(
        evaluations=evaluations,
        absent={seed: choice.reason for seed, choice in choices.items() if isinstance(choice, Absent)},
        estimates=estimates(values, _STATISTICS) if evaluations else {},
        quartiles=_quartiles(values) if len(evaluations) > 1 else None,
    )


def _quartiles(values: np.ndarray) -> tuple[float, float]:
    low, high = np.percentile(values, [25, 75])
    return float(low), float(high)
