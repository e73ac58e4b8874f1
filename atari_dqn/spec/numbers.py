"""Parse numbers in common notations: `50_000_000`, `50,000,000`, `50M`, `820k`, `2.4M`, `1e6`."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_LONGEST = 40
_DIGITS = r"\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*"
_NUMBER = re.compile(
    rf"(?P<number>[+-]?(?:{_DIGITS})(?:\.\d+)?(?:e\+?\d{{1,2}})?)(?P<unit>[km]?)", re.IGNORECASE | re.ASCII
)


def whole_number(text: str) -> int | None:
    """Parse an integer; None if `text` is not one, as `1.5` and `1.2345k` are not."""
    value = _exact(text)
    return value.numerator if value is not None and value.denominator == 1 else None


def real_number(text: str) -> float | None:
    """Parse a number, also `1.5`, `1.2345k`, `1e-4` and `inf`; None if `text` is not one."""
    value = _exact(text)
    try:
        return float(text if value is None else value)
    except ValueError:
        return None


def _exact(text: str) -> Fraction | None:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or len(text) > _LONGEST:
        return None
    return Fraction(re.sub("[_,]", "", match["number"])) * _UNITS[match["unit"].lower()]
