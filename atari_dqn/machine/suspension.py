"""What happens to a terminal when Ctrl-Z stops this process, and when the shell continues it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


class Suspension:
    """Calls `leave` before Ctrl-Z stops the process, and `enter` when it continues.

    That holds from `begin` to `end`. Python calls both in the main thread, wherever it is interrupted: they
    must take no lock. Nothing is changed in other threads, which may not set handlers, and where Ctrl-Z is
    ignored or handled otherwise.
    """

    def __init__(self, leave: Callable[[], None], enter: Callable[[], None]) -> None:
        self._leave, self._enter = leave, enter
        self._is_installed = False

    def begin(self) -> None:
        """Handle Ctrl-Z from now on."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._suspend)
            self._is_installed = True

    def end(self) -> None:
        """Handle Ctrl-Z no longer."""
        if self._is_installed:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            self._is_installed = False

    def _suspend(self, number: int, _: FrameType | None) -> None:
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # stops here until SIGCONT
        signal.signal(number, self._suspend)
        self._enter()
