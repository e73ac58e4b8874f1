"""Print tables as wide as the terminal, and sentences broken at its width."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import typer

PIPE_COLUMNS = 110
"""Width of a table where there is no terminal."""


def print_table(lines: Callable[[int], Iterable[str]]) -> None:
    """Print the lines of a table of so many columns; what is wider than the terminal is broken at words."""
    from atari_dqn.view.wrapping import terminal_columns

    print_lines(lines(terminal_columns(sys.stdout) or PIPE_COLUMNS))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text; those that are wider than the terminal are broken at words."""
    from atari_dqn.view.wrapping import lines_for

    for line in lines_for(sys.stdout, lines):
        typer.echo(line)
