"""SIGINT, SIGTERM and SIGHUP, held until a moment at which the run can be saved."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalGuard:
    """Notes the first such signal inside a `with` block; a second acts as if there were no guard.

    A signal that the program was started to ignore, as under `nohup` or in a script's background, stays so.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> SignalGuard:
        heeded = [number for number in HELD if signal.getsignal(number) is not signal.SIG_IGN]
        self._previous = {number: signal.signal(number, self._note) for number in heeded}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _note(self, number: int, _: FrameType | None) -> None:
        self.received = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
