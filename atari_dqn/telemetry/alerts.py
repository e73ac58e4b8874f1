"""Which of a gate's changes people are told of."""

from __future__ import annotations

from atari_dqn.telemetry.events import GateChanged


class Alarms:
    """Follows the gates and knows which of them have raised an alarm.

    A gate that watches has seen something once. On a machine that others use that happens to speed every few
    minutes, and the run's files have it.
    """

    def __init__(self) -> None:
        self._raised: set[str] = set()

    def take(self, change: GateChanged) -> bool:
        """Take a change in; return whether it is an alarm, or the end of one."""
        if change.state in ("warned", "tripped"):
            self._raised.add(change.gate)
            return True
        ends = change.state == "ok" and change.gate in self._raised
        if ends:
            self._raised.remove(change.gate)
        return ends
