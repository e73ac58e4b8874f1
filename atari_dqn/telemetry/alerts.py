"""Decide which state changes of failure gates are alerts to the user."""

from __future__ import annotations

from atari_dqn.telemetry.events import GateChanged


class Alerts:
    """Tracks which gates have raised an alert.

    The state `watching` is not an alert: on a shared machine the throughput gate enters it every few minutes.
    The event log contains it.
    """

    def __init__(self) -> None:
        self._raised: set[str] = set()

    def update(self, change: GateChanged) -> bool:
        """Record a state change; return whether it begins or ends an alert."""
        if change.state in ("warned", "tripped"):
            self._raised.add(change.gate)
            return True
        ends = change.state == "ok" and change.gate in self._raised
        if ends:
            self._raised.remove(change.gate)
        return ends
