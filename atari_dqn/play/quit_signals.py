"""SIGTERM and SIGHUP while games are played."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any, Self

from atari_dqn.play.keyboard import QUIT, Keys


class QuitSignals:
    """Presses the quit key at the first SIGTERM or SIGHUP inside a `with` block; later ones have no effect.

    Several may come: from a shell whose terminal is closed, and from the system when that shell has ended. A
    signal that was ignored when the program started, as under `nohup`, remains ignored.
    """

    def __init__(self, keys: Keys) -> None:
        self.received: int | None = None
        self._keys = keys
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        numbers = (signal.SIGTERM, signal.SIGHUP)
        handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
        self._previous = {number: signal.signal(number, self._quit) for number in handled}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _quit(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received = number
            self._keys.commands.append(QUIT)
