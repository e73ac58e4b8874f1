"""A live display of rich that gives the terminal back while Ctrl-Z stops the process."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from rich.live import Live

from atari_dqn.machine.suspension import Suspension

_LEAVE_SCREEN, _ENTER_SCREEN = b"\x1b[?1049l", b"\x1b[?1049h"
_SHOW_CURSOR, _HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"
_CLEAR = b"\x1b[2J\x1b[H"  # the display is drawn again from the top, not over the shell's lines


class SuspendableLive(Live):
    """rich's `Live`, whose terminal has its cursor and its lines while the process is stopped."""

    def __init__(self, *arguments: Any, screen: bool = False, **options: Any) -> None:
        super().__init__(*arguments, screen=screen, **options)
        self._leave = (_LEAVE_SCREEN if screen else b"\r\n") + _SHOW_CURSOR
        self._enter = (_ENTER_SCREEN if screen else b"") + _HIDE_CURSOR + _CLEAR
        self._suspension = Suspension(lambda: self._write(self._leave), lambda: self._write(self._enter))

    def start(self, refresh: bool = False) -> None:
        """Start the display."""
        super().start(refresh)
        if self.console.is_terminal:
            self._suspension.begin()

    def stop(self) -> None:
        """Stop the display."""
        self._suspension.end()
        super().stop()

    def _write(self, codes: bytes) -> None:
        """Write around rich, whose locks the interrupted thread may hold."""
        with suppress(OSError, ValueError):  # the terminal is gone, or no file
            os.write(self.console.file.fileno(), codes)
