"""Text for people: numbers and lists in few characters, and text from files made safe to show."""

from __future__ import annotations

import math
from collections.abc import Sequence


def size(count_bytes: float) -> str:
    """Return a size in MB or GB (10⁶, 10⁹ bytes): `34.2 MB`, `7.08 GB`."""
    return f"{count_bytes / 1e9:,.2f} GB" if count_bytes >= 1e9 else f"{count_bytes / 1e6:,.1f} MB"


def duration(seconds: float) -> str:
    """Return a length of time in its two largest units: `42s`, `9m 05s`, `5d 03h`; `-` for no number."""
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
    """Return a large count shortly, at most 6 characters: `950`, `12.3k`, `1.25M`, `50M`; `-` for NaN."""
    if math.isnan(number):
        return "-"
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            text = f"{number / unit:.3g}" if number < 999.5 * unit else f"{number / unit:.0f}"
            return text + name
    return f"{number:.0f}"


def percentage(share: float, *, decimals: int = 1) -> str:
    """Return a share in percent: `45.2%`; `-` for NaN."""
    return "-" if math.isnan(share) else f"{share:.{decimals}%}"


def fingerprint(digest: str) -> str:
    """Return the beginning of a digest, enough to tell one from another: `9fb95e78`."""
    return digest[:8]


def measure(number: float) -> str:
    """Return a measured value with three digits that count, at most 8 characters; `-` for NaN."""
    if math.isnan(number):
        return "-"
    magnitude = abs(number)
    if magnitude and not 1e-3 <= magnitude < 1e5:
        return f"{number:.1e}"
    digits = 0 if magnitude >= 1000 else 1 if magnitude >= 100 else 2 if magnitude >= 10 else 3
    return f"{number:.{digits}f}"


def score(value: float) -> str:
    """Return a game's score: thousands apart, one decimal below 1,000; `-` for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:,.1f}" if abs(value) < 1_000 else f"{value:,.0f}"


def setting(value: bool | int | float | str) -> str:
    """Return a setting's value as a spec has it: `true`, `10,000`, `0.25`, `huber`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


def shortened(keys: Sequence[str], most: int) -> str:
    """Return so many of some keys, and how many more there are: `a, b, and 3 keys more`."""
    left = len(keys) - most
    more = [f"and {left} {'key' if left == 1 else 'keys'} more"] if left > 0 else []
    return ", ".join([*keys[:most], *more])


def printable(text: str) -> str:
    r"""Return text as one line in which every character without a picture of its own is escaped: `\x1b`.

    These are the control characters (line breaks too), the marks that reverse the direction of writing,
    and the halves of surrogate pairs that stand for bytes of a name which are not UTF-8.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def printable_lines(text: str) -> str:
    """Return text of several lines, each made printable; only a line feed ends a line."""
    return "\n".join(map(printable, text.split("\n")))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else repr(letter)[1:-1]
