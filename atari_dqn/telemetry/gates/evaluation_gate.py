"""The gate that looks at full evaluations."""

from __future__ import annotations

import math

from atari_dqn.telemetry.gates.gate import Gate
from atari_dqn.types import StateDict


class EvaluationsGate(Gate[float]):
    """Warns where `patience` evaluations in a row have lost more than `max_drop` of what the best had gained.

    What was gained counts from 0, or from the first evaluation where that is negative: a Pong agent that
    went from −21 to 19 has lost half at −1, a Breakout agent that reached 300 at 150. Where the best is
    negative and the first, its size stands for the gain; where it is 0, nothing can be told.
    """

    name = "evaluations"

    def __init__(self, *, max_drop: float, patience: int) -> None:
        super().__init__(threshold=max_drop, patience=patience)
        self._first = self._best = math.nan

    def measure(self, seen: float) -> float | None:
        """Return the share of the gain that a mean return has lost."""
        if math.isnan(self._first):
            self._first = self._best = seen
        self._best = max(self._best, seen)
        gain = self._best - min(0.0, self._first) or abs(self._best)
        return (self._best - seen) / gain if gain else None

    def describe(self, value: float) -> str:
        """Return what is wrong."""
        return (
            f"the mean return has lost {value:.0%} of what the best evaluation, {self._best:,.1f}, had gained"
        )

    def state_dict(self) -> StateDict:
        """Return the state, the first and the best evaluation."""
        return {**super().state_dict(), "first": self._first, "best": self._best}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state."""
        super().load_state_dict(state)
        self._first, self._best = float(state["first"]), float(state["best"])  # NaN is a word on disk
