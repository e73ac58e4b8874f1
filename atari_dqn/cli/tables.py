"""Print a table as wide as the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import typer

PIPE_COLUMNS = 110
"""Width of a table where there is no terminal."""


def print_table(lines: Callable[[int], Iterable[str]]) -> None:
    """Print the lines of a table of so many columns; what is wider than the terminal is broken at words."""
    from atari_dqn.view.wrapping import lines_for, terminal_columns

    for line in lines_for(sys.stdout, lines(terminal_columns(sys.stdout) or PIPE_COLUMNS)):
        typer.echo(line)
