"""A live display of rich that gives the terminal back while the process is stopped or in the background."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from rich.console import ConsoleRenderable
from rich.live import Live

from atari_dqn.machine.terminal_signals import TerminalSignals
from atari_dqn.view.terminal import is_in_foreground

_LEAVE_SCREEN, _ENTER_SCREEN = b"\x1b[?1049l", b"\x1b[?1049h"
_SHOW_CURSOR, _HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"
_CLEAR = b"\x1b[2J\x1b[H"  # the display is drawn again from the top, not over the shell's lines


class SuspendableLive(Live):
    """A `Live` of rich that restores cursor and screen before a signal stops or ends the process.

    While the process is in the background, after Ctrl-Z and `bg`, nothing is drawn, since the shell uses the
    terminal. Each refresh checks whether the process is in the foreground again, because not every shell
    sends a signal then.
    """

    def __init__(self, *arguments: Any, screen: bool = False, **options: Any) -> None:
        super().__init__(*arguments, screen=screen, **options)
        self._leave = (_LEAVE_SCREEN if screen else b"\r\n") + _SHOW_CURSOR
        self._enter = (_ENTER_SCREEN if screen else b"") + _HIDE_CURSOR + _CLEAR
        self._signals = TerminalSignals(self._leave_terminal, self._enter_terminal)
        self._is_entered = True
        """Whether the terminal shows the display."""

    def start(self, refresh: bool = False) -> None:
        """Start the display."""
        super().start(refresh)
        if self.console.is_terminal:
            self._signals.begin()

    def stop(self) -> None:
        """Stop the display."""
        self._signals.end()
        if self.is_started:
            self._enter_terminal()
        quiet = self.console.quiet
        self.console.quiet = quiet or not self._is_entered  # no control codes from the background
        try:
            super().stop()
        finally:
            self.console.quiet = quiet

    def refresh(self) -> None:
        """Draw the display, if the process is in the foreground."""
        with self._lock:
            if self._signals.is_leaving:
                return
            self._enter_terminal()
            if self._is_entered and is_in_foreground(self.console):
                with self._signals.drawing():
                    super().refresh()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Add the display to what is printed, if the terminal shows it."""
        return super().process_renderables(renderables) if self._is_entered else renderables

    def _leave_terminal(self) -> None:
        if self._is_entered:
            self._is_entered = False
            self._write(self._leave)

    def _enter_terminal(self) -> None:
        if not self._is_entered and is_in_foreground(self.console):
            self._is_entered = True
            self._write(self._enter)

    def _write(self, codes: bytes) -> None:
        """Write around rich, whose locks the interrupted thread may hold."""
        with suppress(OSError, ValueError):  # the terminal is gone, or no file
            os.write(self.console.file.fileno(), codes)
