"""A limit on the time for which other processes may be silent, which is short once the run is to end."""

from __future__ import annotations

from collections.abc import Callable


class SilenceLimit:
    """A limit on the number of consecutive waits in which no process answers.

    Waits are counted instead of time, because a suspended run or a sleeping laptop adds at most one wait.
    """

    def __init__(
        self,
        stop: Callable[[], bool],
        *,
        most_waits: int,
        waits_at_end: int,
        wait_seconds: float,
        resume: Callable[[], None],
    ) -> None:
        """`stop`: whether the run is to end, after which the limit is `waits_at_end`.

        `resume`: continues processes that are stopped (SIGSTOP).
        """
        self.wait_seconds = wait_seconds
        self._stop, self._most_waits, self._resume = stop, most_waits, resume
        self._waits_at_end = waits_at_end
        self.reset()

    def reset(self) -> None:
        """Restart the count after an answer."""
        self._waits = self._last_waits = 0

    def exceeded(self) -> str | None:
        """Count a wait without an answer; return the reason to give up, or None to wait again.

        Once the run is to end, stopped processes are continued, so that their state can be saved.
        """
        self._waits += 1
        if self._stop():
            if not self._last_waits:
                self._resume()
            self._last_waits += 1
        if self._last_waits > self._waits_at_end:
            seconds = self._waits_at_end * self.wait_seconds
            return f"has not answered for {seconds:.0f} seconds after the run was to end"
        if self._waits == self._most_waits:
            return f"has not answered for {self._most_waits * self.wait_seconds:.0f} seconds"
        return None
