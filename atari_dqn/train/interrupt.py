"""Defer SIGINT, SIGTERM and SIGHUP until the run can be saved."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

from atari_dqn.envs.processes import ENDING_SIGNALS


class SignalGuard:
    """Records the first of the ending signals inside a `with` block.

    The second of SIGINT and SIGTERM has its usual effect: it ends the program at once. SIGHUP never has it,
    since a terminal that closes may send several, from the shell and from the system, and SIGTERM next to
    them. A signal that was ignored when the program started, as under `nohup`, remains ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> SignalGuard:
        handled = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._previous = {number: signal.signal(number, self._record) for number in handled}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore(*ENDING_SIGNALS)

    def _record(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received = number
        if number != signal.SIGHUP:
            self._restore(signal.SIGINT, signal.SIGTERM)

    def _restore(self, *numbers: int) -> None:
        for number in self._previous.keys() & set(numbers):
            signal.signal(number, self._previous[number])
