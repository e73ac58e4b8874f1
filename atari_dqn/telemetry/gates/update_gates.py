"""Failure gates that check every update."""

from __future__ import annotations

import math
from typing import NamedTuple

from atari_dqn.telemetry.gates.gate import Gate

CALM_UPDATES = 1_000
"""Right updates in a row after which a gate is `ok` again."""


class UpdateRecord(NamedTuple):
    """The measurements of one update."""

    update: int
    """Its number; 1 is the run's first."""
    loss: float
    mean_q: float
    max_q: float
    mean_abs_td_error: float
    grad_norm: float
    nonfinite_gradients: float
    """Number of consecutive updates without a finite gradient, up to this one."""


class LossGate(Gate[UpdateRecord]):
    """Halts at the first loss or Q that is not finite."""

    name = "loss"
    alert_state = "tripped"

    def __init__(self) -> None:
        super().__init__(threshold=math.inf)

    def measure(self, record: UpdateRecord) -> float:
        """Return the first of loss, mean Q and max Q that is not finite, or else the loss."""
        return next((value for value in record[1:4] if not math.isfinite(value)), record.loss)

    def is_wrong(self, value: float) -> bool:
        """Return whether the value is NaN or infinite."""
        return not math.isfinite(value)

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"loss or Q is {value}"


class GradientsGate(Gate[UpdateRecord]):
    """Halts after more than `max_consecutive` updates in a row without a finite gradient."""

    name = "gradients"
    alert_state = "tripped"

    def __init__(self, *, max_consecutive: int) -> None:
        super().__init__(threshold=max_consecutive, patience=max_consecutive + 1, calm=CALM_UPDATES)

    def measure(self, record: UpdateRecord) -> float:
        """Return the number of consecutive updates without a finite gradient."""
        return record.nonfinite_gradients

    def is_wrong(self, value: float) -> bool:
        """Return whether this update's gradient was not finite."""
        return value > 0

    def is_alert(self, value: float) -> bool:
        """Return whether the count of the learner, which continues over resumes, is too large."""
        return value > self.threshold

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"{value:.0f} updates in a row had no finite gradient; none of them changed a weight"


class GradNormGate(Gate[UpdateRecord]):
    """Warns if a finite gradient's norm, before clipping, is above `max_norm`."""

    name = "grad_norm"

    def __init__(self, *, max_norm: float) -> None:
        super().__init__(threshold=max_norm, calm=CALM_UPDATES)

    def measure(self, record: UpdateRecord) -> float | None:
        """Return the norm; None if it is not finite, which `GradientsGate` checks."""
        return record.grad_norm if record.grad_norm < math.inf else None

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"gradient norm {value:,.0f} is above {self.threshold:,.0f}"


class QBoundGate(Gate[UpdateRecord]):
    """Warns if |Q| is above `max_over_bound` times the largest that rewards allow, `bound`.

    Without a discount or clipped rewards the bound is infinite, and the gate is always `ok`.
    """

    name = "q_bound"

    def __init__(self, *, bound: float, max_over_bound: float) -> None:
        super().__init__(threshold=max_over_bound * bound, calm=CALM_UPDATES)

    def measure(self, record: UpdateRecord) -> float:
        """Return the larger of max Q and −mean Q."""
        return max(record.max_q, -record.mean_q)

    def describe(self, value: float) -> str:
        """Describe the fault."""
        return f"|Q| reaches {value:,.1f}; clipped rewards allow {self.threshold:,.1f}"
