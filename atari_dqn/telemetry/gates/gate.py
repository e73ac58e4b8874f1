"""What all gates share: a state that follows from how long something has been wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from atari_dqn.telemetry.events import GateState
from atari_dqn.types import StateDict

Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The new state of a gate, and why."""

    state: GateState
    value: float
    message: str


class Gate(ABC, Generic[Seen]):
    """Measures one value of what it is shown, and raises its alarm where `patience` in a row are wrong.

    `calm` right values in a row end every state but `ok`, so that a value on the brink is not told of again
    and again. What a gate has seen so far decides its state, not how it was cut into looks.
    """

    name: ClassVar[str]
    alarm: ClassVar[GateState] = "warned"

    def __init__(self, *, threshold: float, patience: int = 1, calm: int = 1) -> None:
        self.threshold, self.patience, self.calm = threshold, patience, calm
        self.state: GateState = "ok"
        self.value = 0.0
        """What the latest change measured."""
        self._wrong_in_a_row = 0
        self._right_in_a_row = calm

    def see(self, seen: Seen) -> Change | None:
        """Take what there is to see; return the new state where it changes."""
        value = self.measure(seen)
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
        """Return what the latest change has to say."""
        if self.state == "ok":
            return "as it should be again"
        tally = f" ({self._wrong_in_a_row} of {self.patience} in a row)" if self.state == "watching" else ""
        return self.describe(self.value) + tally

    @abstractmethod
    def measure(self, seen: Seen) -> float | None:
        """Return the value; None where there is nothing to tell from."""

    @abstractmethod
    def describe(self, value: float) -> str:
        """Return what is wrong with a value, for people."""

    def is_wrong(self, value: float) -> bool:
        """Return whether a value is beyond the threshold."""
        return value > self.threshold

    def state_dict(self) -> StateDict:
        """Return the state and what it hangs on."""
        return {
            "state": self.state,
            "value": self.value,
            "wrong_in_a_row": self._wrong_in_a_row,
            "right_in_a_row": self._right_in_a_row,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a state."""
        self.state, self.value = state["state"], float(state["value"])  # an infinity is a word on disk
        self._wrong_in_a_row = state["wrong_in_a_row"]
        self._right_in_a_row = state["right_in_a_row"]

    def is_alarming(self, value: float) -> bool:
        """Return whether it has been wrong for long enough, up to this value."""
        del value
        return self._wrong_in_a_row >= self.patience

    def _next(self, value: float, wrong: bool) -> GateState:
        self._wrong_in_a_row = self._wrong_in_a_row + 1 if wrong else 0
        self._right_in_a_row = 0 if wrong else self._right_in_a_row + 1
        if self.is_alarming(value):
            return self.alarm
        if self._right_in_a_row >= self.calm:
            return "ok"
        return "watching" if self.state == "ok" else self.state
