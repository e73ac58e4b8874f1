"""The gate that looks at reports of the replay."""

from __future__ import annotations

import math

from atari_dqn.telemetry.gates.gate import Gate


class PrioritiesGate(Gate[float]):
    """Warns where the effective sample size is less than `min_share` of the transitions.

    That is (Σp)² / Σp², Kish's: where a few priorities outweigh all the others together, learning sees only
    those few transitions. Under uniform sampling it is all of them.
    """

    name = "priorities"

    def __init__(self, *, min_share: float) -> None:
        super().__init__(threshold=min_share)

    def measure(self, seen: float) -> float | None:
        """Return the effective share; None where the replay had nothing to sample."""
        return None if math.isnan(seen) else seen

    def is_wrong(self, value: float) -> bool:
        """Return whether the share is too small."""
        return value < self.threshold

    def describe(self, value: float) -> str:
        """Return what is wrong."""
        return f"minibatches come from {value:.2%} of the replay in effect: few priorities outweigh the rest"
