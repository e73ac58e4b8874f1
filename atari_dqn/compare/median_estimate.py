"""Estimate the median human-normalised score over 57 games from the scores of five or ten of them."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from atari_dqn.compare.comparison import Comparison
from atari_dqn.compare.reference.studies import human_random

_TABLE = "atari57"
"""The human scores by which the coefficients were fitted."""
_LEAST_CERTAIN_PERCENT = 40.0
"""Below this the estimate is off by half in agents that took no part in the fit."""


@dataclass(frozen=True, kw_only=True)
class Subset:
    """Games with the coefficients of their log scores. Aitchison et al. (2023)."""

    name: str
    coefficients: Mapping[str, float]
    error: float
    """Mean relative error of the estimate, as published."""

    def estimate(self, normalised: Mapping[str, float]) -> float:
        """Estimate the median over 57 games in percent from human-normalised scores by game."""
        logs = (
            coefficient * math.log10(1 + max(0.0, 100 * normalised[game]))
            for game, coefficient in self.coefficients.items()
        )
        return 10 ** math.fsum(logs) - 1


@dataclass(frozen=True, kw_only=True)
class MedianEstimate:
    """The estimate of a method."""

    method: str
    subset: Subset
    percent: float
    """Estimated median over 57 games, in percent of human."""

    def __str__(self) -> str:
        """Return the estimate with its published error as one sentence."""
        doubt = (
            f"; below {_LEAST_CERTAIN_PERCENT:.0f} % the error is several times as large"
            if self.percent < _LEAST_CERTAIN_PERCENT
            else ""
        )
        return (
            f"{self.method}: the median over 57 games is estimated from {self.subset.name} as "
            f"{self.percent:.1f} % of human (published error {self.subset.error:.1%}{doubt})"
        )


@cache
def subsets() -> tuple[Subset, ...]:
    """Return the subsets of games, the smallest first."""
    text = files("atari_dqn.compare.reference").joinpath("median_of_57.toml").read_text("utf-8")
    return tuple(Subset(**table) for table in tomllib.loads(text)["subset"])


def median_estimates(comparison: Comparison) -> list[MedianEstimate]:
    """Estimate the median of each method that has comparable scores on all games of a subset."""
    scores: dict[str, dict[str, float]] = {}
    for result in comparison.results:
        human = human_random(result.group.game, _TABLE)
        if human is not None and result.last.n and result.last.is_covered_by(human):
            values = [each.mean_return for each in result.last.evaluations.values()]
            by_game = scores.setdefault(result.group.method.label, {})
            by_game[result.group.game] = human.normalised(math.fsum(values) / len(values))
    return [
        MedianEstimate(method=method, subset=subset, percent=subset.estimate(normalised))
        for method, normalised in scores.items()
        for subset in subsets()
        if subset.coefficients.keys() <= normalised.keys()
    ]
