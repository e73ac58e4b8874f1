"""Screens as text: each character is the lower half block, which shows two pixels, one above the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from jaxtyping import Int64, UInt8

LEAST_COLUMNS, LEAST_LINES = 40, 16
"""The size of the smallest terminal in which games are drawn."""
_BLOCK = "▄"
_ASPECT = 4 / 3
"""Width over height of a game on a television, where the pixels of the Atari are not square."""
_LEVELS = np.array([0, 95, 135, 175, 215, 255])
"""The values of each colour in the cube of the 256 colours that most terminals have."""
_RESET = "\x1b[0m"
_BETWEEN = " "


def games_as_text(
    facts: Sequence[str],
    screens: Sequence[UInt8[np.ndarray, "H W 3"]],
    size: tuple[int, int],
    *,
    help_line: str,
    exact: bool,
) -> Iterator[str]:
    """Yield a line of facts, the screens next to each other, and a line of help; `size`: columns, lines.

    Nothing is wider or higher than `size`. In less than the smallest terminal, ask for a larger one instead.
    """
    if not is_large_enough(size):
        yield f"enlarge to {LEAST_COLUMNS} × {LEAST_LINES}"[: size[0]]
        return
    columns = (size[0] - (len(screens) - 1) * len(_BETWEEN)) // len(screens)
    width, height = fitting_size(columns, size[1] - 2)
    yield _BETWEEN.join(each[:columns].ljust(width) for each in facts)
    drawn = (half_blocks(screen, width, height, exact=exact) for screen in screens)
    yield from map(_BETWEEN.join, zip(*drawn, strict=True))
    yield help_line[: size[0]]


def is_large_enough(size: tuple[int, int]) -> bool:
    """Return whether a terminal of some columns and lines has room for games."""
    return size[0] >= LEAST_COLUMNS and size[1] >= LEAST_LINES


def fitting_size(columns: int, lines: int) -> tuple[int, int]:
    """Return width and height in pixels of the largest picture that fits; a line has two pixels."""
    width = min(columns, int(2 * lines * _ASPECT))
    height = min(2 * lines, int(width / _ASPECT))
    return width, height - height % 2


def half_blocks(screen: UInt8[np.ndarray, "H W 3"], width: int, height: int, *, exact: bool) -> list[str]:
    """Draw a screen as lines of characters, in 24-bit colours if `exact`, otherwise in 256."""
    pixels = np.asarray(cv2.resize(screen, (width, height), interpolation=cv2.INTER_AREA))
    colours = _exact(pixels) if exact else _indexed(pixels)
    return [_line(colours[row], colours[row + 1], exact=exact) for row in range(0, height, 2)]


def _exact(pixels: UInt8[np.ndarray, "h w 3"]) -> Int64[np.ndarray, "h w"]:
    red, green, blue = np.moveaxis(pixels.astype(np.int64), 2, 0)
    colours: np.ndarray = (red << 16) + (green << 8) + blue
    return colours


def _indexed(pixels: UInt8[np.ndarray, "h w 3"]) -> Int64[np.ndarray, "h w"]:
    """Return the nearest colours of the cube, whose indices begin at 16."""
    nearest = np.abs(pixels[..., None].astype(np.int64) - _LEVELS).argmin(axis=-1)
    red, green, blue = np.moveaxis(nearest, 2, 0)
    indices: np.ndarray = 16 + 36 * red + 6 * green + blue
    return indices


def _line(upper: Int64[np.ndarray, "w"], lower: Int64[np.ndarray, "w"], *, exact: bool) -> str:
    """Draw two rows of pixels as one line, with a code only where the colours change."""
    runs = itertools.groupby(zip(upper.tolist(), lower.tolist(), strict=True))
    return "".join(_code(*pair, exact=exact) + _BLOCK * len(list(run)) for pair, run in runs) + _RESET


def _code(upper: int, lower: int, *, exact: bool) -> str:
    if not exact:
        return f"\x1b[48;5;{upper}m\x1b[38;5;{lower}m"
    above, below = (f"{colour >> 16};{colour >> 8 & 255};{colour & 255}" for colour in (upper, lower))
    return f"\x1b[48;2;{above}m\x1b[38;2;{below}m"
