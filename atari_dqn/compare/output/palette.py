"""Looks of lines that people with any colour vision tell apart: colours first, then dashes.

Colours are those of Okabe & Ito (2008), without yellow and black.
"""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (9, 3, 2, 3))
"""Lengths of what is drawn and what is not, in turn; none for a whole line."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a line is drawn."""

    colour: str
    dashes: tuple[int, ...]


def look(place: int) -> Look:
    """Return the look of the line at a place; after 18 they begin anew."""
    round_number, number = divmod(place, len(COLOURS))
    return Look(colour=COLOURS[number], dashes=_DASHES[round_number % len(_DASHES)])
