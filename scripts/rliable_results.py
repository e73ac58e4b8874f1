"""Write what rliable makes of scores: python scripts/rliable_results.py --out tests/rliable.json.

Needs an environment of its own with rliable 1.2.0 and pandas below 3: arch 7.2, which rliable imports, fails
with pandas 3. Its bootstrap draws from NumPy's global state, whatever random state it is given; here its
draws come from a generator of fixed seed instead, so that they can be drawn again.

Scores: the example matrices of rliable's own tests, then 50 random pairs of up to 10 runs of up to 8 games,
every third of them coarse, so that scores tie.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from unittest import mock

import numpy as np
from rliable import library, metrics

RESAMPLES = 200
SEED = 7
EXAMPLE = (
    np.array([[1.0, 2.0], [2.0, 2.0], [1.0, 1.0], [2.0, 1.0]]),
    np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]),
)
METRICS = {
    "mean": metrics.aggregate_mean,
    "median": metrics.aggregate_median,
    "iqm": metrics.aggregate_iqm,
    "optimality_gap": metrics.aggregate_optimality_gap,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    rng = np.random.default_rng(20_211_206)
    cases = [case(*EXAMPLE), *(case(*matrices(rng, number)) for number in range(50))]
    packages = {name: version(name) for name in ("rliable", "arch", "numpy", "scipy")}
    document = {"versions": packages, "resamples": RESAMPLES, "seed": SEED, "cases": cases}
    out.write_text(json.dumps(document, indent=1) + "\n")


def matrices(rng: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of two methods on the same games."""
    games = int(rng.integers(1, 9))
    sides = [rng.lognormal(-0.5, 1.0, size=(int(rng.integers(2, 11)), games)) for _ in range(2)]
    decimals = 1 if number % 3 == 0 else 6
    return sides[0].round(decimals), sides[1].round(decimals)


def case(left: np.ndarray, right: np.ndarray) -> dict[str, object]:
    results = {name: interval(left, metric) for name, metric in METRICS.items()}
    results["improvement"] = interval((left, right), metrics.probability_of_improvement)
    return {"left": left.tolist(), "right": right.tolist(), "results": results}


def interval(scores: object, metric: Callable[..., float]) -> list[float]:
    """Return the point estimate, then the interval's ends."""
    with mock.patch.object(np.random, "choice", np.random.default_rng(SEED).choice):
        points, ends = library.get_interval_estimates(
            {"x": scores}, lambda *drawn: np.array([metric(*drawn)]), reps=RESAMPLES
        )
    return [float(points["x"][0]), float(ends["x"][0, 0]), float(ends["x"][1, 0])]


if __name__ == "__main__":
    main()
