"""Format numbers and lists for display, and escape text that comes from files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence


def size(count_bytes: float) -> str:
    """Format a number of bytes in MB or GB (10⁶, 10⁹ bytes): `34.2 MB`, `7.08 GB`."""
    return f"{count_bytes / 1e9:,.2f} GB" if count_bytes >= 1e9 else f"{count_bytes / 1e6:,.1f} MB"


def duration(seconds: float) -> str:
    """Format a duration in its two largest units: `42s`, `9m 05s`, `5d 03h`; `-` for NaN and infinity."""
    if not math.isfinite(seconds):
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < 86_400:
        return f"{whole // 3600}h {whole % 3600 // 60:02}m"
    return f"{whole // 86_400}d {whole % 86_400 // 3600:02}h"


def count(number: float) -> str:
    """Format a count in at most 6 characters: `950`, `12.3k`, `1.25M`, `50M`; `-` for NaN."""
    if math.isnan(number):
        return "-"
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= unit:
            text = f"{number / unit:.3g}" if abs(number) < 999.5 * unit else f"{number / unit:.0f}"
            return text + name
    return f"{number:.0f}"


def percentage(share: float, *, decimals: int = 1) -> str:
    """Format a fraction as a percentage: `45.2%`; `-` for NaN."""
    return "-" if math.isnan(share) else f"{share:.{decimals}%}"


def fingerprint(digest: str) -> str:
    """Shorten a hexadecimal digest to its first 8 digits: `9fb95e78`."""
    return digest[:8]


def measure(number: float) -> str:
    """Format a measured value in at most 8 characters, with about three significant digits; `-` for NaN."""
    if math.isnan(number):
        return "-"
    magnitude = abs(number)
    if magnitude and not 1e-3 <= magnitude < 1e5:
        return f"{number:.1e}"
    digits = 0 if magnitude >= 1000 else 1 if magnitude >= 100 else 2 if magnitude >= 10 else 3
    return f"{number:.{digits}f}"


def score(value: float) -> str:
    """Format a game score: `1,234` from 1,000 on, with one decimal below; `-` for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:,.1f}" if abs(value) < 1_000 else f"{value:,.0f}"


def setting(value: bool | int | float | str) -> str:
    """Format the value of a spec's key: `true`, `10,000`, `0.25`, `huber`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


def shortened(keys: Sequence[str], most: int) -> str:
    """Join the first `most` keys and the number of the others: `a, b, and 3 keys more`."""
    left = len(keys) - most
    more = [f"and {left} {'key' if left == 1 else 'keys'} more"] if left > 0 else []
    return ", ".join([*keys[:most], *more])


def plural(number: float, noun: str) -> str:
    """Format a number with its noun: `1 run`, `1,200 runs`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def wrapped(text: str, *, indent: str = "  ", first_indent: str = "") -> str:
    """Break a line of the terminal at 80 columns; `indent` is in front of each part but the first."""
    return textwrap.fill(
        text, 80, initial_indent=first_indent, subsequent_indent=indent, break_long_words=False
    )


def printable(text: str) -> str:
    r"""Escape every character that is not printable, line breaks included: `\x1b`.

    These are control characters, marks that reverse the direction of writing, and lone surrogates, which
    stand for the bytes of a file name that are not UTF-8.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def printable_lines(text: str) -> str:
    """Escape each line of a text with `printable`; only a line feed ends a line."""
    return "\n".join(map(printable, text.split("\n")))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else repr(letter)[1:-1]
