"""The failure gate for full evaluations."""

from __future__ import annotations

import math

from atari_dqn.telemetry.gates.gate import Gate
from atari_dqn.types import StateDict


class EvaluationsGate(Gate[float]):
    """Warns if `patience` evaluations in a row have lost more than `max_drop` of the gain of the best one.

    The gain is counted from 0, or from the first evaluation if that is negative: a Pong agent that went from
    −21 to 19 has lost half at −1, a Breakout agent that reached 300 has lost half at 150. If the best
    evaluation is the first and negative, its absolute value is the gain; if it is 0, nothing is measured.
    """

    name = "evaluations"

    def __init__(self, *, max_drop: float, patience: int) -> None:
        super().__init__(threshold=max_drop, patience=patience)
        self._first = self._best = math.nan

    def measure(self, record: float) -> float | None:
        """Compute the share of the gain that a mean return has lost."""
        if math.isnan(self._first):
            self._first = self._best = record
        self._best = max(self._best, record)
        gain = self._best - min(0.0, self._first) or abs(self._best)
        return (self._best - record) / gain if gain else None

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return (
            f"the mean return has lost {value:.0%} of what the best evaluation, {self._best:,.1f}, had gained"
        )

    def state_dict(self) -> StateDict:
        """Return the state with the first and the best evaluation."""
        return {**super().state_dict(), "first": self._first, "best": self._best}

    def load_state_dict(self, state: StateDict) -> None:
        """Load a state."""
        super().load_state_dict(state)
        self._first, self._best = float(state["first"]), float(state["best"])  # JSON has NaN as a string
