"""Pictures of how returns are distributed: each step's masses in bins, brighter where there is more.

T agent steps, Z points of a distribution, K bins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8

from atari_dqn.record.drawing import BACKGROUND, GREEDY
from atari_dqn.traces import Returns

_TAIL = 0.002
"""Share of a game's mass above the range that is shown, and as much below."""
_MOST_QUANTILE_BINS = 40


@dataclass(frozen=True, eq=False)
class BinnedReturns:
    """A game's distributions on one axis."""

    low: float
    """The lower edge of the lowest bin."""
    high: float
    """The upper edge of the highest."""
    share: Float32[np.ndarray, "T K"]
    """Each bin's mass over that of the step's fullest."""
    edge_mass: Float32[np.ndarray, "T 2"] | None
    """Mass on the lowest and the highest atom; None of quantiles, which have no edge."""

    def picture(self, first: int, last: int) -> UInt8[np.ndarray, "K W 3"]:
        """Return a column for each of the steps from `first` to `last`, high returns above."""
        share = self.share[first : last + 1, ::-1].T[:, :, None]
        below, above = np.array(BACKGROUND, np.float32), np.array(GREEDY, np.float32)
        return (below + share**0.7 * 0.7 * (above - below)).astype(np.uint8)


def binned(returns: Returns, steps: int) -> BinnedReturns:
    """Return a game's distributions in bins: one for each atom that matters, or as many as quantiles fill."""
    return _atoms(returns, steps) if len(returns.points) == 1 else _quantiles(returns, steps)


def _atoms(returns: Returns, steps: int) -> BinnedReturns:
    points = returns.points[0]
    mass = np.broadcast_to(returns.mass.astype(np.float32), (steps, len(points)))
    up_to = mass.mean(axis=0).cumsum()
    first = int(np.searchsorted(up_to, _TAIL))
    last = min(int(np.searchsorted(up_to, up_to[-1] - _TAIL)), len(points) - 1)
    half = float(points[1] - points[0]) / 2
    return BinnedReturns(
        low=float(points[first]) - half,
        high=float(points[last]) + half,
        share=_of_fullest(mass[:, first : last + 1]),
        edge_mass=mass[:, [0, -1]],
    )


def _quantiles(returns: Returns, steps: int) -> BinnedReturns:
    points = np.broadcast_to(returns.points, (steps, returns.points.shape[1]))
    low, high = (float(edge) for edge in np.quantile(points, [_TAIL, 1 - _TAIL]))
    high = max(high, low + 1e-6)
    bins = min(_MOST_QUANTILE_BINS, points.shape[1])
    place = ((points - low) / (high - low) * bins).astype(np.int64).clip(0, bins - 1)
    count = np.zeros((steps, bins), np.float32)
    np.add.at(count, (np.arange(steps)[:, None], place), 1.0)
    return BinnedReturns(low=low, high=high, share=_of_fullest(count), edge_mass=None)


def _of_fullest(mass: Float32[np.ndarray, "T K"]) -> Float32[np.ndarray, "T K"]:
    share: np.ndarray = mass / np.maximum(mass.max(axis=1, keepdims=True), np.float32(1e-6))
    return share
