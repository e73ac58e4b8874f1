"""Statistics of scores over seeds and games, defined as in rliable (Agarwal et al. 2021).

Legend: R resamples, N runs (seeds), M games. Scores are f64[..., N, M] with a row for each run. Every
statistic reduces the last two axes, so that it accepts one matrix of scores or a batch of resampled matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Statistic = Callable[[Scores], Scores]

RESAMPLES = 2_000
CONFIDENCE = 0.95
SEED = 0
"""The seed of every bootstrap, so that intervals depend on the scores alone."""
_CHUNK_SCORES = 2_000_000
"""The largest number of resampled scores in memory: 16 MB."""


_ANGLES = 100_001
"""Points of a numerical integral: quantiles of Student's distribution are then exact to 1e-6."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval: of a difference of means Welch's, else a bootstrap percentile interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval; None for a single run, and where no run differs from another."""

    value: float
    interval: Interval | None


def column(values: Sequence[float]) -> Scores:
    """Return the scores of runs on one game as statistics take them. f64[N, 1]."""
    return np.array(values, dtype=np.float64)[:, None]


def mean(scores: Scores) -> Scores:
    """Compute the mean over games of each game's mean over runs. f64[..., N, M] → f64[...]."""
    return np.asarray(scores.mean(axis=-2).mean(axis=-1))


def median(scores: Scores) -> Scores:
    """Compute the median over games of each game's mean over runs. f64[..., N, M] → f64[...]."""
    return np.asarray(np.median(scores.mean(axis=-2), axis=-1))


def median_run(scores: Scores) -> Scores:
    """Compute the median over all runs of all games. f64[..., N, M] → f64[...]."""
    return np.asarray(np.median(_pooled(scores), axis=-1))


def iqm(scores: Scores) -> Scores:
    """Compute the interquartile mean over all runs of all games. f64[..., N, M] → f64[...].

    A quarter of the scores, rounded down, is removed at each end.
    """
    pooled = np.sort(_pooled(scores), axis=-1)
    cut = pooled.shape[-1] // 4
    return np.asarray(pooled[..., cut : pooled.shape[-1] - cut].mean(axis=-1))


def optimality_gap(scores: Scores) -> Scores:
    """Compute the mean of max(0, 1 − score) over all runs of all games. f64[..., N, M] → f64[...]."""
    return np.asarray(1.0 - np.minimum(scores, 1.0).mean(axis=(-2, -1)))


def probability_of_improvement(left: Scores, right: Scores) -> Scores:
    """Compute the probability that a run of `left` scores higher than one of `right`, averaged over games.

    Ties count half. f64[..., N, M], f64[..., K, M] → f64[...]. Per game it is the Mann–Whitney U statistic
    divided by N·K.
    """
    ours, theirs = left[..., :, None, :], right[..., None, :, :]
    wins = (ours > theirs) + 0.5 * (ours == theirs)
    return np.asarray(wins.mean(axis=(-3, -2)).mean(axis=-1))


def estimates(
    scores: Scores, statistics: Mapping[str, Statistic], *, resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, Estimate]:
    """Compute statistics of f64[N, M] with stratified bootstrap intervals.

    Runs are drawn with replacement within each game. All statistics use the same resamples.
    """
    values = {name: [statistic(scores)[None]] for name, statistic in statistics.items()}
    if len(scores) > 1:
        rng = np.random.default_rng(seed)
        for count in _chunks(resamples, scores.size):
            drawn = _resampled(scores, rng.integers(0, len(scores), size=(count, *scores.shape)))
            for name, statistic in statistics.items():
                values[name].append(statistic(drawn))
    return {name: _estimate(np.concatenate(parts)) for name, parts in values.items()}


def improvement(left: Scores, right: Scores, *, resamples: int = RESAMPLES, seed: int = SEED) -> Estimate:
    """Estimate the probability that `left` improves on `right`; each side is resampled independently.

    f64[N, M], f64[K, M]; the columns are the same games.
    """
    values = [probability_of_improvement(left, right)[None]]
    if min(len(left), len(right)) > 1:
        rng = np.random.default_rng(seed)
        for count in _chunks(resamples, left.size * len(right)):
            ours, theirs = _draw_in_turn(rng, left, right, count)
            values.append(probability_of_improvement(_resampled(left, ours), _resampled(right, theirs)))
    return _estimate(np.concatenate(values))


def difference(left: Scores, right: Scores) -> Estimate:
    """Estimate the mean of `left` minus the mean of `right`, with Welch's interval (1947).

    f64[N, M], f64[K, M]; the columns are the same games, over which the difference is averaged. The interval
    has the degrees of freedom of Welch and Satterthwaite. It is None for a single run on a side, and for
    different means if on each side all runs are equal: nothing is known of their spread then.
    """
    left, right = left - left[0], right - left[0]  # equal scores are 0 then, whose mean is not rounded
    value = float(mean(left) - mean(right))
    if min(len(left), len(right)) == 1:
        return Estimate(value, None)
    games = left.shape[-1]
    # of each side and game, the variance of the mean over runs
    variances = np.concatenate([side.var(axis=0, ddof=1) / len(side) for side in (left, right)]) / games**2
    freedom = np.repeat([len(left) - 1, len(right) - 1], games)
    total = float(variances.sum())
    if total == 0:
        return Estimate(value, Interval(0.0, 0.0) if value == 0 else None)
    half = student_quantile(total**2 / float((variances**2 / freedom).sum())) * math.sqrt(total)
    return Estimate(value, Interval(value - half, value + half))


def student_quantile(freedom: float) -> float:
    """Compute the t between whose negative and itself Student's distribution has the share `CONFIDENCE`.

    With t = tan(θ)·√ν the density of θ is proportional to cos(θ)^(ν−1), which is summed up numerically.
    """
    angle = np.linspace(0.0, math.pi / 2, _ANGLES)
    density = np.cos(angle) ** (freedom - 1)
    share = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return math.tan(float(np.interp(CONFIDENCE, share / share[-1], angle))) * math.sqrt(freedom)


def _estimate(values: Scores) -> Estimate:
    """Return the first value with the percentile interval of the others, if there are any."""
    if len(values) == 1:
        return Estimate(float(values[0]), None)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(values[1:], [tail, 100 - tail])
    return Estimate(float(values[0]), Interval(float(low), float(high)))


def _resampled(scores: Scores, indices: NDArray[np.int64]) -> Scores:
    """Select the runs of each game by index. f64[N, M], i64[R, N, M] → f64[R, N, M]."""
    return np.take_along_axis(scores[None], indices, axis=1)


def _draw_in_turn(
    rng: np.random.Generator, left: Scores, right: Scores, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the indices of both sides, one resample after the other: i64[R, N, M] and i64[R, K, M]."""
    if left.shape == right.shape:  # one call draws the same numbers and is many times faster
        both = rng.integers(0, len(left), size=(count, 2, *left.shape))
        return both[:, 0], both[:, 1]
    draws = [[rng.integers(0, len(side), size=side.shape) for side in (left, right)] for _ in range(count)]
    return np.stack([draw[0] for draw in draws]), np.stack([draw[1] for draw in draws])


def _pooled(scores: Scores) -> Scores:
    return scores.reshape(*scores.shape[:-2], -1)


def _chunks(resamples: int, size: int) -> list[int]:
    """Split a number of resamples into chunks that fit in memory."""
    each = max(1, _CHUNK_SCORES // size)
    return [min(each, resamples - done) for done in range(0, resamples, each)]
