"""The failure gate for reports on the replay."""

from __future__ import annotations

import math

from atari_dqn.telemetry.gates.gate import Gate


class PrioritiesGate(Gate[float]):
    """Warns if the effective sample size is less than `min_share` of the transitions.

    Kish's effective sample size is (Σp)² / Σp². If a few priorities outweigh all others together, minibatches
    consist of those few transitions. Under uniform sampling it is the number of transitions.
    """

    name = "priorities"

    def __init__(self, *, min_share: float) -> None:
        super().__init__(threshold=min_share)

    def measure(self, record: float) -> float | None:
        """Return the effective share; None if the replay was empty."""
        return None if math.isnan(record) else record

    def is_wrong(self, value: float) -> bool:
        """Return whether the share is too small."""
        return value < self.threshold

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"minibatches come from {value:.2%} of the replay in effect: few priorities outweigh the rest"
