"""Break sentences at the width of a terminal, so that their lines can be counted."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from atari_dqn.formatting import printable_lines

MOST_REPORTS = 4
"""The number of reports that a view shows below its table."""
_MOST_REPORT_LINES = 8
_INDENT = "  "


def wrapped_lines(text: str, columns: int) -> list[str]:
    """Break a text at words, and words longer than a line anywhere, after escaping control characters."""
    return [
        part
        for line in printable_lines(text).split("\n")
        for part in textwrap.wrap(line, columns, subsequent_indent=_INDENT, break_on_hyphens=False) or [""]
    ]


def report_lines(reports: Sequence[str], columns: int) -> list[str]:
    """Break reports into lines; of too many, the last ones, which are the newest."""
    return [line for report in reports for line in wrapped_lines(report, columns)][-_MOST_REPORT_LINES:]
