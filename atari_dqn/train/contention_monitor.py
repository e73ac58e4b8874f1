"""Report when other programs begin to use the cores that a run needs, and when they stop."""

from __future__ import annotations

import time
from collections.abc import Callable

from atari_dqn.clock import Clock
from atari_dqn.machine.contention import Contention, CoreTimes, contention, read_core_times
from atari_dqn.telemetry.events import Notice, Sink

_PERIOD_SECONDS = 10.0
_PATIENCE_PERIODS = 3
"""Shorter changes, such as a compilation or a backup, are not reported."""


class ContentionMonitor:
    """Reads the CPU time counters every ten seconds, and reports a change that lasts half a minute.

    `remedy`: returns a suggestion for the user.
    """

    def __init__(
        self,
        sinks: Sink,
        clock: Clock,
        *,
        threads: int,
        remedy: Callable[[Contention], str],
        read: Callable[[], CoreTimes] = read_core_times,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sinks, self._clock = sinks, clock
        self._threads, self._remedy, self._read, self._now = threads, remedy, read, now
        self._before, self._due = read(), now() + _PERIOD_SECONDS
        self._is_slowed = False
        self._periods_of_change = 0

    def poll(self) -> None:
        """Read the counters if a period has passed."""
        if self._now() < self._due:
            return
        before, self._before = self._before, self._read()
        self._due = self._now() + _PERIOD_SECONDS
        found = contention(before, self._before)
        if found is not None:
            self._update(found)

    def _update(self, found: Contention) -> None:
        changes = found.slows(self._threads) != self._is_slowed
        self._periods_of_change = self._periods_of_change + 1 if changes else 0
        if self._periods_of_change < _PATIENCE_PERIODS:
            return
        self._is_slowed, self._periods_of_change = not self._is_slowed, 0
        if self._is_slowed:
            waiting = f"this run's threads wait {found.waiting_share:.0%} of their time for a core"
            self._notice("busy machine", f"{found}, and {waiting}; {self._remedy(found)}")
        else:
            self._notice("free machine", f"{found}, and this run's threads have the cores they need again")

    def _notice(self, kind: str, message: str) -> None:
        clock = self._clock
        self._sinks.handle(Notice(kind=kind, step=clock.steps, env_frames=clock.env_frames, message=message))


def contention_remedy(found: Contention, *, threads: int, device: str, resume_command: str) -> str:
    """Suggest what the user can do about other programs on the cores of the run."""
    if device == "cpu" and found.suitable_threads < threads:
        command = f"{resume_command} --threads {found.suitable_threads}"
        return f"end them, or interrupt this run and continue with `{command}`"
    return "end them, or wait for them"
