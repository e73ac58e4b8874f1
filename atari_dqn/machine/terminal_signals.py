"""Give a terminal back before a signal stops or ends this process, and take it again afterwards."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_HANDLED = (signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Ctrl-Z, `kill`, a terminal that is closed, and Ctrl-\\; SIGINT raises an exception already."""


class TerminalSignals:
    """Calls `leave` before a signal stops or ends the process, and `enter` when a stopped process continues.

    Signals are handled between `begin` and `end`, except those that are ignored or already have a handler.
    After `leave` a signal has its default effect, so that a shell reports it as usual: 143 after SIGTERM.
    Python runs the handler in the main thread, between any two instructions: `leave` and `enter` must take no
    lock. Outside the main thread, where no handler can be set, `begin` does nothing.
    """

    def __init__(self, leave: Callable[[], None], enter: Callable[[], None]) -> None:
        self._leave, self._enter = leave, enter
        self._handler = self._handle  # one object, which `end` compares; each access creates a new method
        self._installed: list[signal.Signals] = []
        self._is_drawing = False
        self._deferred: int | None = None
        """A signal that came during a drawing."""
        self.is_leaving = False
        """Whether the terminal is given back, or is about to be: nothing may be drawn any more."""

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Defer the signals to the end of the block, in whichever thread: no picture may follow `leave`."""
        self._is_drawing = True
        try:
            yield
        finally:
            self._is_drawing = False
            number, self._deferred = self._deferred, None
            if number is not None:
                os.kill(os.getpid(), number)

    def begin(self) -> None:
        """Handle the signals from now on."""
        if threading.current_thread() is threading.main_thread():
            self._installed = [number for number in _HANDLED if signal.getsignal(number) is signal.SIG_DFL]
            for number in self._installed:
                signal.signal(number, self._handler)

    def end(self) -> None:
        """Handle the signals no longer."""
        for number in self._installed:
            if signal.getsignal(number) is self._handler:
                signal.signal(number, signal.SIG_DFL)
        self._installed = []

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._is_drawing:
            self._deferred = number
            return
        self.is_leaving = True
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # ends here, or stops here until SIGCONT
        signal.signal(number, self._handler)
        self.is_leaving = False
        self._enter()
