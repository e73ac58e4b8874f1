"""The record of an actor over all of its incarnations: what it sent, what was lost, when it begins anew."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_BACK_OFF_SECONDS, LONGEST_BACK_OFF_SECONDS = 0.1, 30.0
SILENT_SECONDS = 30.0
"""Time without a message after which an actor is called silent."""


@dataclass(kw_only=True)
class Record:
    """The counts and times of one actor. The time until a restart doubles until a message has come."""

    incarnation: int = 0
    restarts: int = 0
    steps_received: int = 0
    dropped_steps: int = 0
    """Steps that were played and never sent."""
    next_start: float = 0.0
    last_error: str = ""
    _is_alive: bool = False
    _last_message: float = 0.0
    _back_off_seconds: float = FIRST_BACK_OFF_SECONDS

    def started(self, now: float) -> None:
        """Record that the actor has been started."""
        self._is_alive, self._last_message = True, now

    def received(self, now: float, steps: int) -> None:
        """Record a message of some steps."""
        self.steps_received += steps
        self._last_message, self._back_off_seconds = now, FIRST_BACK_OFF_SECONDS

    def ended(self, now: float, error: str, *, steps_played: int) -> None:
        """Record that the actor has ended; all its messages have been received."""
        self._is_alive, self.last_error = False, error
        self.dropped_steps = steps_played - self.steps_received
        self.incarnation, self.restarts = self.incarnation + 1, self.restarts + 1
        self.next_start = now + self._back_off_seconds
        self._back_off_seconds = min(2 * self._back_off_seconds, LONGEST_BACK_OFF_SECONDS)

    def state(self, now: float) -> str:
        """Return `playing`, `silent` or `ended`."""
        if not self._is_alive:
            return "ended"
        return "silent" if now - self._last_message > SILENT_SECONDS else "playing"
