"""Line styles that remain distinguishable with any colour vision: first by colour, then by dashes.

The colours are those of Okabe & Ito (2008) without yellow and black.
"""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (9, 3, 2, 3))
"""Alternating lengths of dashes and gaps in pixels; empty for a solid line."""


@dataclass(frozen=True, kw_only=True)
class LineStyle:
    """The colour and the dashes of a line."""

    colour: str
    dashes: tuple[int, ...]


def line_style(place: int) -> LineStyle:
    """Return the style of the line with an index; styles repeat after 18."""
    round_number, number = divmod(place, len(COLOURS))
    return LineStyle(colour=COLOURS[number], dashes=_DASHES[round_number % len(_DASHES)])
