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
    """Calls `leave` before a signal stops or ends the process, and `enter` after a stopped one continues.

    That is from `begin` to `end`. The effect of the signal is the system's, so that a shell reports it as
    usual: 143 after SIGTERM. Python calls both functions in the main thread, wherever it is interrupted: they
    must take no lock. Signals that are ignored or handled otherwise are left alone, and so are all in other
    threads, which may not set handlers.
    """

    def __init__(self, leave: Callable[[], None], enter: Callable[[], None]) -> None:
        self._leave, self._enter = leave, enter
        self._handler = self._handle
        self._installed: list[signal.Signals] = []
        self._is_drawing, self._is_stop_due = False, False

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Defer Ctrl-Z to the end of the block, in whichever thread: no picture may follow `leave`."""
        self._is_drawing = True
        try:
            yield
        finally:
            self._is_drawing = False
            if self._is_stop_due:
                self._is_stop_due = False
                os.kill(os.getpid(), signal.SIGTSTP)

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
        if number == signal.SIGTSTP and self._is_drawing:
            self._is_stop_due = True
            return
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # ends here, or stops here until SIGCONT
        signal.signal(number, self._handler)
        self._enter()
