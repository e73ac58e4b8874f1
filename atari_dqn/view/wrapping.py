"""Break sentences at the width of a terminal, so that their lines can be counted."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TextIO

from atari_dqn.formatting import printable_lines

MOST_REPORTS = 4
"""The number of reports that a view shows below its table."""
_MOST_REPORT_LINES = 8
_INDENT = "  "
_COMMAND = re.compile(r"`[^`\n]*`")
_HELD = "\0"
"""A space at which no line is broken; printable text has no such character."""


def wrapped_lines(text: str, columns: int) -> list[str]:
    """Break a text at words, and words longer than a line anywhere, after escaping control characters."""
    return _broken(printable_lines(text), columns, _INDENT, break_long_words=True)


def lines_at_words(text: str, columns: int, *, indent: str = _INDENT) -> list[str]:
    """Break a text at words alone, after escaping control characters.

    A longer word, such as a path, and a command in backquotes stay whole, so that they can be copied: the
    terminal breaks them. `indent` is in front of each line but the first.
    """
    held = _COMMAND.sub(lambda command: command[0].replace(" ", _HELD), printable_lines(text))
    return [line.replace(_HELD, " ") for line in _broken(held, columns, indent, break_long_words=False)]


def _broken(text: str, columns: int, indent: str, *, break_long_words: bool) -> list[str]:
    wrap = partial(
        textwrap.wrap, subsequent_indent=indent, break_on_hyphens=False, break_long_words=break_long_words
    )
    return [part for line in text.split("\n") for part in wrap(line, columns) or [""]]


def terminal_columns(stream: TextIO | None) -> int:
    """Return the width of the terminal that a stream writes to; 0 if it is none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream is not None else 0
    except (OSError, ValueError):  # a file or a pipe; a closed stream
        return 0


def lines_for(stream: TextIO | None, lines: Iterable[str], *, indent: str = _INDENT) -> Iterator[str]:
    """Break lines at words at the width of the terminal that a stream writes to; none without a terminal."""
    columns = terminal_columns(stream)
    for line in lines:
        yield from lines_at_words(line, columns, indent=indent) if columns else [line]


def report_lines(reports: Sequence[str], columns: int) -> list[str]:
    """Break reports into lines; of too many, the last ones, which are the newest."""
    return [line for report in reports for line in wrapped_lines(report, columns)][-_MOST_REPORT_LINES:]
