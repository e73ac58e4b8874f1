"""Compress the screens of a game for a browser, as indices of a palette.

Consecutive screens differ in few pixels, so that their differences are mostly zeros. Each chunk begins with a
whole screen, so that a browser decodes the chunk of a screen and not the whole game:

    screens   A | B | C | …  →  A | A⊕B | B⊕C | …  →  compressed

Legend: C colours, N screens of a chunk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import UInt8

from atari_dqn.record.packing import pack

CHUNK_SCREENS = 64
"""Two megabytes of decoded screens."""
_MAX_COLOURS = 256
_NO_COLOUR = -1
_LUMA = np.array([0.299, 0.587, 0.114])


class Palette:
    """The colours of a game, in the order of their appearance; the console has 128."""

    def __init__(self) -> None:
        self._index = np.full(1 << 24, _NO_COLOUR, np.int16)
        """The index of each colour, by its 24 bits."""
        self._colours = np.zeros((_MAX_COLOURS, 3), np.uint8)
        self._size = 0

    @property
    def colours(self) -> UInt8[np.ndarray, "C 3"]:
        """The colours in RGB."""
        return self._colours[: self._size]

    def indices(self, screen: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W"]:
        """Return the indices of the colours of a screen; new colours are added."""
        red, green, blue = np.moveaxis(screen.astype(np.uint32), -1, 0)
        codes = red << 16 | green << 8 | blue
        indices: np.ndarray = self._index[codes]
        if (indices == _NO_COLOUR).any():
            self._add(np.unique(codes[indices == _NO_COLOUR]))
            indices = self._index[codes]
        return indices.astype(np.uint8)

    def brighter(
        self, first: UInt8[np.ndarray, "H W"], second: UInt8[np.ndarray, "H W"]
    ) -> UInt8[np.ndarray, "H W"]:
        """Return the index of the brighter colour at each pixel."""
        luma = self._colours @ _LUMA
        brighter: np.ndarray = np.where(luma[first] >= luma[second], first, second)
        return brighter

    def _add(self, codes: np.ndarray) -> None:
        last = self._size + len(codes)
        assert last <= _MAX_COLOURS, "a console has 128 colours, a toy game 256 grey levels"
        self._index[codes] = np.arange(self._size, last)
        self._colours[self._size : last] = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
        self._size = last


class CompressedScreens:
    """The screens of a game, compressed while they are added."""

    def __init__(self) -> None:
        self._palette = Palette()
        self._chunk: list[UInt8[np.ndarray, "H W"]] = []
        self._chunks: list[dict[str, Any]] = []

    def add(self, screens: tuple[UInt8[np.ndarray, "H W 3"], ...]) -> None:
        """Add the last two screens of an agent step as one: the brighter pixels, which the agent gets too."""
        *_, last = indices = [self._palette.indices(screen) for screen in screens[-2:]]
        self._chunk.append(self._palette.brighter(indices[0], last))
        if len(self._chunk) == CHUNK_SCREENS:
            self._compress()

    def data(self) -> dict[str, Any]:
        """Return all screens as plain data; no more can be added."""
        if self._chunk:
            self._compress()
        return {
            "palette": pack(self._palette.colours),
            "screens_per_chunk": CHUNK_SCREENS,
            "chunks": self._chunks,
        }

    def _compress(self) -> None:
        chunk = np.stack(self._chunk)
        chunk[1:] ^= chunk[:-1].copy()
        self._chunks.append(pack(chunk))
        self._chunk.clear()
