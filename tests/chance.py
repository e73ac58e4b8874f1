"""Pearson's χ² test, without scipy.stats, which every worker would import for a second."""

import numpy as np
from numpy.typing import ArrayLike


def p_value(counts: ArrayLike, expected: ArrayLike | None = None) -> float:
    """Return the probability of counts at least as far from those expected, by default equal ones."""
    from scipy.special import chdtrc  # here, because few workers run a test that needs it

    found = np.asarray(counts, dtype=float)
    hoped = np.full_like(found, found.mean()) if expected is None else np.asarray(expected, dtype=float)
    assert np.isclose(found.sum(), hoped.sum()), "both are counts of as many draws"
    return float(chdtrc(found.size - 1, ((found - hoped) ** 2 / hoped).sum()))
