"""The scores by which trials may be rated, and their statistic over seeds and games."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atari_dqn.compare.reference.caps import published_caps
from atari_dqn.compare.reference.studies import DEFAULT_HUMAN_TABLE, human_random
from atari_dqn.compare.statistics import iqm, mean
from atari_dqn.formatting import plural
from atari_dqn.scale.tuning.tune import Objective, Statistic

STATISTICS = {"mean": mean, "iqm": iqm}


@dataclass(frozen=True, kw_only=True)
class Score:
    """A number that a full evaluation has."""

    column: str
    """Its column in eval_log.csv."""
    unit: str
    is_normalised: bool = False
    """Whether it is the human-normalised score, 0 for random actions and 1 for the human score."""

    def of(self, game: str, value: float) -> float:
        """Convert the value of the column for a game."""
        if not self.is_normalised:
            return value
        humans = human_random(game)
        assert humans is not None, "a game without human scores is refused when the tune file is read"
        return humans.normalised(value)


SCORES: Mapping[str, Score] = {
    "mean_return": Score(column="mean_return", unit="game score, unclipped"),
    "median_return": Score(column="median_return", unit="game score, unclipped"),
    "min_return": Score(column="min_return", unit="game score, unclipped"),
    "max_return": Score(column="max_return", unit="game score, unclipped"),
    "mean_length_frames": Score(column="mean_length_frames", unit="emulator frames per episode"),
    "human_normalised": Score(
        column="mean_return",
        unit=f"mean return, human-normalised: 0 random, 1 human, table {DEFAULT_HUMAN_TABLE}",
        is_normalised=True,
    ),
}
COLUMNS = tuple(dict.fromkeys(score.column for score in SCORES.values()))


def score_problems(name: str, games: Sequence[str], max_episode_frames: int) -> Iterator[str]:
    """Yield the reasons why a score cannot rate trials on some games with a frame cap in evaluation."""
    score = SCORES[name]
    if not score.is_normalised:
        if len(games) > 1:
            yield (
                f"{name} of different games cannot be averaged; expected human_normalised, "
                f"or one game instead of {len(games)}"
            )
        return
    for game in games:
        if human_random(game) is None:
            yield f"{game} has no human score; expected a game of the 57, or mean_return"
    if max_episode_frames not in published_caps():
        caps = ", ".join(f"{cap:,}" for cap in sorted(published_caps()))
        yield (
            f"games cut at {max_episode_frames:,} frames cannot be normalised; expected "
            f"evaluation.max_episode_frames to be one of {caps}, as published scores have, or mean_return"
        )


def statistic_of(statistic: Statistic, scores: Sequence[Sequence[float]]) -> float:
    """Compute the statistic of scores by seed and game; NaN if one of them is not a number."""
    matrix = np.array(scores, dtype=np.float64)
    return float(STATISTICS[statistic](matrix)) if np.isfinite(matrix).all() else math.nan


def objective_text(objective: Objective, seeds: int, games: Sequence[str]) -> str:
    """Describe the objective on one line: `mean over 3 seeds of mean_return (…) at 1,000,000 frames`."""
    name = {"mean": "mean", "iqm": "IQM"}[objective.statistic]
    over = plural(seeds, "seed") + (f" and {len(games)} games" if len(games) > 1 else "")
    return (
        f"{objective.direction} the {name} over {over} of {objective.score} ({SCORES[objective.score].unit}) "
        f"of the full evaluation at {objective.at_frames:,} frames"
    )
