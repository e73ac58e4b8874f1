"""Decide whether a run has ended, also where no event says so, as after SIGKILL."""

from __future__ import annotations

import math
from collections.abc import Callable

from atari_dqn.run.tailing.status import IMPORTED, RunStatus
from atari_dqn.telemetry.events import ENDINGS

ENDED_WITHOUT_EVENT = ("stopped", "silent")
_ENDED = {*ENDINGS.values(), IMPORTED}
ENDED_AFTER_SECONDS = 60.0
"""A run without a process counts as ended after this time; a sweep pauses for less before it resumes one."""


class EndDetector:
    """Detects the end of one run. `now`: a clock in seconds, which need not be the time of day."""

    def __init__(self, *, now: Callable[[], float]) -> None:
        self._now = now
        self._written, self._since = math.nan, 0.0
        """When the run last wrote, by the clock of its disk, and since when that is known, by `now`."""

    def has_ended(self, status: RunStatus) -> bool:
        """Return whether the run has ended, by an event, or without one and without writing for a minute.

        A run whose lock this machine does not see, on another one, is not ended while it writes. The clock
        of its disk is not compared with that of this machine, which may differ.
        """
        state = status.state
        if state not in ENDED_WITHOUT_EVENT:
            self._written = math.nan
            return state in _ENDED
        if status.last_written != self._written:
            self._written, self._since = status.last_written, self._now()
        return self._now() - self._since >= ENDED_AFTER_SECONDS
