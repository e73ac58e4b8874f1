"""Put the value distributions of a game into bins: the probability mass of each step.

Legend: T agent steps, Z points of a distribution, K bins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from atari_dqn.evaluation.traces import BestReturns

_TAIL = 0.002
"""Share of the mass of a game above the plotted range, and below it."""
_MOST_QUANTILE_BINS = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class BinnedReturns:
    """The value distributions of a game in common bins."""

    low: float
    """The lower edge of the lowest bin."""
    high: float
    """The upper edge of the highest bin."""
    share: Float32[np.ndarray, "T K"]
    """The mass of each bin divided by that of the fullest bin of the step."""
    edge_mass: Float32[np.ndarray, "T 2"] | None
    """Mass of the lowest and the highest atom; None for quantiles."""


def binned(returns: BestReturns, steps: int) -> BinnedReturns:
    """Bin the value distributions of a game: a bin for each atom in the range, or up to 40 for quantiles."""
    return _atoms(returns, steps) if returns.atoms else _quantiles(returns, steps)


def _atoms(returns: BestReturns, steps: int) -> BinnedReturns:
    points = returns.points[0]
    mass = np.broadcast_to(returns.mass.astype(np.float32), (steps, len(points)))
    up_to = mass.mean(axis=0).cumsum()
    first = int(np.searchsorted(up_to, _TAIL))
    last = min(int(np.searchsorted(up_to, up_to[-1] - _TAIL)), len(points) - 1)
    half = float(points[1] - points[0]) / 2
    low, high = float(points[first]) - half, float(points[last]) + half
    return _binned(low, high, mass[:, first : last + 1], mass[:, [0, -1]])


def _quantiles(returns: BestReturns, steps: int) -> BinnedReturns:
    points = np.broadcast_to(returns.points, (steps, returns.points.shape[1]))
    low, high = (float(edge) for edge in np.quantile(points, [_TAIL, 1 - _TAIL]))
    high = max(high, low + 1e-6)
    bins = min(_MOST_QUANTILE_BINS, points.shape[1])
    place = ((points - low) / (high - low) * bins).astype(np.int64).clip(0, bins - 1)
    count = np.zeros((steps, bins), np.float32)
    np.add.at(count, (np.arange(steps)[:, None], place), 1.0)
    return _binned(low, high, count, None)


def _binned(
    low: float,
    high: float,
    mass: Float32[np.ndarray, "T K"],
    edge_mass: Float32[np.ndarray, "T 2"] | None,
) -> BinnedReturns:
    share = mass / np.maximum(mass.max(axis=1, keepdims=True), np.float32(1e-6))
    return BinnedReturns(low=low, high=high, share=share, edge_mass=edge_mass)
