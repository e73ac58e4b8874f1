"""The keys in which two specs differ: a table, or where that is too wide, lines below each key."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from atari_dqn.formatting import printable

_LEFT, _RIGHT = "red", "green"
_SPACES = 8
"""Columns between the three columns of the table, and at its edges."""
_TITLE_COLUMNS = 12
"""A title has at least this width; a longer one may be broken."""

Row = tuple[str, str, str]
"""A key with both values."""


def differences_view(rows: Sequence[Row], left: str, right: str, *, columns: int) -> RenderableType:
    """Draw the keys with both values, below the names of the two specs, for a terminal of some columns."""
    titles = ("key", printable(left), printable(right))
    key, *values = (max(map(len, column)) for column in zip(*rows, strict=True))
    needed = [max(width, _TITLE_COLUMNS) for width in values]
    spare = columns - _SPACES - key - sum(needed)
    if spare < 0:
        return _lines(rows, titles)
    wanted = [max(len(title), width) for title, width in zip(titles[1:], values, strict=True)]
    widths = [min(most, width + spare // 2) for most, width in zip(wanted, needed, strict=True)]
    return _table(rows, titles, (key, *widths))


def _table(rows: Sequence[Row], titles: Row, widths: Sequence[int]) -> Table:
    """Draw a table with columns of these widths, at which titles are broken."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title, style, width in zip(titles, ("bold", _LEFT, _RIGHT), widths, strict=True):
        table.add_column(Text(title), style=style, width=width, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _lines(rows: Sequence[Row], titles: Row) -> Text:
    """Draw the names of the specs with their signs, then below each key its values."""
    text = Text.assemble((f"- {titles[1]}\n", _LEFT), (f"+ {titles[2]}", _RIGHT))
    for key, left, right in rows:
        text.append_text(
            Text.assemble((f"\n{key}", "bold"), (f"\n  - {left}", _LEFT), (f"\n  + {right}", _RIGHT))
        )
    return text
