"""Find the line of a table with the highest value, without holding the others."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

from atari_dqn.files.atomic import open_regular

_MOST_LINE_BYTES = 2**20


def highest(path: Path, span: range, column: int) -> list[str]:
    """Find the line with the highest number in a column, among the lines in a span of bytes.

    → that line; none if no line has a number there, or the file has vanished.
    """
    best, found = -math.inf, b""
    with suppress(OSError), open_regular(path) as file:
        file.seek(span.start)
        while file.tell() < span.stop and (line := file.readline(_MOST_LINE_BYTES)):
            cells = line.split(b",", column + 1)
            with suppress(ValueError, IndexError):
                if float(cells[column]) > best:
                    best, found = float(cells[column]), line
    return [found.decode(errors="replace").rstrip("\n")] if found else []
