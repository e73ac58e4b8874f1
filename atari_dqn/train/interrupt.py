"""SIGINT and SIGTERM, held until a moment at which the run can be saved."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

HELD = (signal.SIGINT, signal.SIGTERM)


class SignalGuard:
    """Notes the first SIGINT or SIGTERM inside a `with` block; a second acts as if there were no guard."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> SignalGuard:
        self._previous = {number: signal.signal(number, self._note) for number in HELD}
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
