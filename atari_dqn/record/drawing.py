"""The canvas on which panels are drawn, with its unit of length and its palette."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from jaxtyping import Float32, UInt8
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]

BACKGROUND: Colour = (17, 19, 24)
RAISED: Colour = (30, 34, 42)
LINE: Colour = (48, 53, 64)
FAINT: Colour = (134, 142, 158)
PLAIN: Colour = (205, 210, 220)
BRIGHT: Colour = (250, 251, 255)
GREEDY: Colour = (88, 166, 255)
RANDOM: Colour = (255, 160, 66)
GAIN: Colour = (86, 211, 132)
LOSS: Colour = (248, 98, 98)

Align = Literal["left", "middle", "right"]
_ANCHORS: dict[Align, str] = {"left": "lm", "middle": "mm", "right": "rm"}
_BRIGHTEST = 0.7
"""Brightness of a full bin, below 1 so that a curve over it remains visible."""


@cache
def font(size_pixels: int) -> ImageFont.FreeTypeFont:
    """Return the font that is part of Pillow, so that videos look the same on every machine.

    It has the letters of ASCII and Latin-1 only.
    """
    found = ImageFont.load_default(size_pixels)
    assert isinstance(found, ImageFont.FreeTypeFont), "the wheels of Pillow contain FreeType"
    return found


class Canvas:
    """An image drawn in units of 1/630 of its height, so that it looks the same at every scale."""

    HEIGHT = 630.0

    def __init__(self, image: Image.Image) -> None:
        self._image, self._draw = image, ImageDraw.Draw(image)
        self._unit = image.height / self.HEIGHT

    @classmethod
    def blank(cls, *, width: int, height: int) -> Canvas:
        """Return an empty canvas. `width`, `height`: in pixels."""
        return cls(Image.new("RGB", (width, height), BACKGROUND))

    @property
    def width(self) -> float:
        """The width in units."""
        return self._image.width / self._unit

    def copy(self) -> Canvas:
        """Return a copy of the canvas."""
        return Canvas(self._image.copy())

    def pixels(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return the pixels of the canvas."""
        return np.asarray(self._image)

    def text(self, x: float, y: float, text: str, size: float, colour: Colour, align: Align = "left") -> None:
        """Draw one line of text, vertically centred at `y`; `align` tells which part of it is at `x`."""
        scaled_font = font(max(1, round(size * self._unit)))
        self._draw.text(self._at(x, y), text, font=scaled_font, fill=colour, anchor=_ANCHORS[align])

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: Colour, radius: float = 0
    ) -> None:
        """Fill a rectangle with rounded corners, at least one pixel wide and high."""
        (x0, y0), (x1, y1) = self._at(left, top), self._at(right, bottom)
        corners = (x0, y0, max(x0, x1 - 1), max(y0, y1 - 1))
        self._draw.rounded_rectangle(corners, radius=radius * self._unit, fill=colour)

    def line(self, points: list[tuple[float, float]], colour: Colour, width: float = 1.0) -> None:
        """Draw a line through points."""
        pixels = [self._at(x, y) for x, y in points]
        self._draw.line(pixels, fill=colour, width=max(1, round(width * self._unit)), joint="curve")

    def picture(
        self, left: float, top: float, right: float, bottom: float, picture: UInt8[np.ndarray, "h w 3"]
    ) -> None:
        """Draw an image stretched to a rectangle, without interpolation."""
        (x0, y0), (x1, y1) = self._at(left, top), self._at(right, bottom)
        size = max(1, int(x1 - x0)), max(1, int(y1 - y0))
        self._image.paste(Image.fromarray(picture).resize(size, Image.Resampling.NEAREST), (int(x0), int(y0)))

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return round(x * self._unit), round(y * self._unit)


def bins_picture(share: Float32[np.ndarray, "T K"]) -> UInt8[np.ndarray, "K T 3"]:
    """Draw how full K bins are at T steps as brightness, with a column for each step and high bins above."""
    below, above = np.array(BACKGROUND, np.float32), np.array(GREEDY, np.float32)
    brightness = np.float32(_BRIGHTEST) * share[:, ::-1].T[:, :, None] ** np.float32(0.7)
    picture: np.ndarray = (below + brightness * (above - below)).astype(np.uint8)
    return picture
