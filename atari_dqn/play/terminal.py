"""A terminal that shows pictures and reports keys at once, and is put back when the games end."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from atari_dqn.errors import UserError
from atari_dqn.machine.terminal_signals import TerminalSignals
from atari_dqn.play.half_blocks import LEAST_COLUMNS, LEAST_LINES, games_as_text, is_large_enough
from atari_dqn.play.keyboard import QUIT, Keyboard
from atari_dqn.play.live_game import Screen

_OPEN = b"\x1b[?1049h\x1b[?25l\x1b[2J"  # another screen, without a cursor
_CLOSE = b"\x1b[0m\x1b[?25h\x1b[?1049l"
_WITHOUT_SCREEN = ("dumb", "unknown")
"""Names of terminals that cannot move the cursor."""
_REMEDY = "`--window` plays in a window"
_HOME, _ERASE_LINE, _ERASE_REST = "\x1b[H", "\x1b[2K", "\x1b[J"


class Terminal:
    """The terminal of this process, with a line of help below the games.

    `UserError` if there is none, or if it cannot show pictures or is too small for a game.
    """

    def __init__(self, help_line: str) -> None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UserError(f"dqn play needs a terminal for its input and its output; {_REMEDY}")
        name = os.environ.get("TERM", "")
        if name in _WITHOUT_SCREEN:
            raise UserError(
                f"dqn play needs a terminal that can move its cursor, found TERM={name}; if it can, set "
                f"TERM to its name, such as xterm-256color; {_REMEDY}"
            )
        columns, lines = self.size()
        if not is_large_enough((columns, lines)):
            raise UserError(
                f"the terminal has {columns} columns and {lines} lines; "
                f"expected at least {LEAST_COLUMNS} and {LEAST_LINES}"
            )
        self.keys, self._help_line = Keyboard(self.read), help_line
        self._exact_colours = os.environ.get("COLORTERM") in ("truecolor", "24bit")
        self._input, self._output = sys.stdin.fileno(), sys.stdout.fileno()
        self._settings = termios.tcgetattr(self._input)
        self._signals = TerminalSignals(self._close, self._open)

    def __enter__(self) -> Self:
        """Show an empty screen, and report keys without waiting for a line."""
        self._open()
        self._signals.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show what was there before."""
        self._signals.end()
        self._close()

    def _open(self) -> None:
        tty.setcbreak(self._input)
        os.write(self._output, _OPEN)  # not by `sys.stdout`, a write to which the handler may interrupt

    def _close(self) -> None:
        """Put the terminal back, unless it is gone, and discard keys that are still held."""
        with suppress(OSError, termios.error):
            os.write(self._output, _CLOSE)
            termios.tcsetattr(self._input, termios.TCSAFLUSH, self._settings)

    def size(self) -> tuple[int, int]:
        """Return the numbers of columns and lines."""
        found = shutil.get_terminal_size()
        return found.columns, found.lines

    def read(self) -> str:
        """Return the text typed since the last call, without waiting; quit where the terminal is gone."""
        typed = b""
        while select.select([self._input], [], [], 0)[0]:
            try:
                piece = os.read(self._input, 1024)
            except OSError:
                piece = b""
            if not piece:
                return QUIT
            typed += piece
        return typed.decode(errors="ignore")

    def show(self, facts: Sequence[str], screens: Sequence[Screen]) -> None:
        """Replace what is shown by a screen of each game, with a line of facts for each."""
        lines = games_as_text(
            facts, screens, self.size(), help_line=self._help_line, exact=self._exact_colours
        )
        *above, last = lines
        # erased before they are written: after a line as wide as the terminal, some erase its last character
        text = "".join(f"{_ERASE_LINE}{line}\r\n" for line in above)
        sys.stdout.write(_HOME + text + _ERASE_REST + last)
        sys.stdout.flush()
