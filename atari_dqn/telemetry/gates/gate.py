"""The base of all failure gates: a state that depends on how long a value has been beyond its threshold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from atari_dqn.telemetry.events import GateState
from atari_dqn.types import StateDict

Measurement = TypeVar("Measurement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The new state of a gate with its reason."""

    state: GateState
    value: float
    message: str


class Gate(ABC, Generic[Measurement]):
    """Measures one value of each record, and raises an alert if `patience` values in a row are wrong.

    `calm` right values in a row return it to `ok`, so that a value near the threshold does not raise alert
    after alert. The state depends only on the sequence of records, not on how they are grouped into calls.
    """

    name: ClassVar[str]
    alert_state: ClassVar[GateState] = "warned"

    def __init__(self, *, threshold: float, patience: int = 1, calm: int = 1) -> None:
        self.threshold, self.patience, self.calm = threshold, patience, calm
        self.state: GateState = "ok"
        self.value = 0.0
        """The value at the latest state change."""
        self._wrong_in_a_row = 0
        self._right_in_a_row = calm

    def check(self, record: Measurement) -> Change | None:
        """Measure a record; return the new state if it changes, else None."""
        value = self.measure(record)
        if value is None:
            return None
        wrong = self.is_wrong(value)
        if self.state == "ok" and not wrong:
            return None
        state = self._next(value, wrong)
        if state == self.state:
            return None
        self.state, self.value = state, value
        return Change(state=state, value=value, message=self.message())

    def message(self) -> str:
        """Describe the latest state change."""
        if self.state == "ok":
            return "as it should be again"
        tally = f" ({self._wrong_in_a_row} of {self.patience} in a row)" if self.state == "watching" else ""
        return self.describe(self.value) + tally

    @abstractmethod
    def measure(self, record: Measurement) -> float | None:
        """Return the value of a record; None if it has none."""

    @abstractmethod
    def describe(self, value: float) -> str:
        """Describe a wrong value to the user."""

    def is_wrong(self, value: float) -> bool:
        """Return whether a value is beyond the threshold."""
        return value > self.threshold

    def state_dict(self) -> StateDict:
        """Return the state and the counters that determine it."""
        return {
            "state": self.state,
            "value": self.value,
            "wrong_in_a_row": self._wrong_in_a_row,
            "right_in_a_row": self._right_in_a_row,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Load a state."""
        self.state, self.value = state["state"], float(state["value"])  # JSON has infinity as a string
        self._wrong_in_a_row = state["wrong_in_a_row"]
        self._right_in_a_row = state["right_in_a_row"]

    def is_alert(self, value: float) -> bool:
        """Return whether enough values in a row were wrong, this one included."""
        del value
        return self._wrong_in_a_row >= self.patience

    def _next(self, value: float, wrong: bool) -> GateState:
        self._wrong_in_a_row = self._wrong_in_a_row + 1 if wrong else 0
        self._right_in_a_row = 0 if wrong else self._right_in_a_row + 1
        if self.is_alert(value):
            return self.alert_state
        if self._right_in_a_row >= self.calm:
            return "ok"
        return "watching" if self.state == "ok" else self.state
