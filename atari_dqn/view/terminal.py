"""Whether the output is a terminal, and whether a live view may be drawn on it."""

from __future__ import annotations

import os

from rich.console import Console


def is_on_terminal(console: Console) -> bool:
    """Return whether a console writes to a terminal.

    rich counts a file as one where FORCE_COLOR is set; that variable asks for colours, not for screens.
    """
    try:
        return console.is_terminal and console.file.isatty()
    except ValueError:  # a closed stream
        return False


def is_in_foreground(console: Console) -> bool:
    """Return whether this process may draw on its terminal: no shell has put it in the background."""
    try:
        return os.tcgetpgrp(console.file.fileno()) == os.getpgrp()
    except (OSError, ValueError):  # not the terminal of this session, so that no shell of it is disturbed
        return True


def suits_live_view(console: Console) -> bool:
    """Return whether a live view may be drawn: on a terminal in the foreground, with more than ASCII."""
    knows_symbols = not console.is_dumb_terminal and not console.options.ascii_only
    return is_on_terminal(console) and knows_symbols and is_in_foreground(console)
