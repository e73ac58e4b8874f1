"""From screens to frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np
from jaxtyping import UInt8

_INTERPOLATION = {"area": cv2.INTER_AREA, "bilinear": cv2.INTER_LINEAR}
_MAX_CHANNELS = 4
"""As many as OpenCV's area resize takes."""


class Resizer:
    """Scales grey screens to square frames.

    Screens of several lanes pass through OpenCV as the channels of one image: each channel gets the same
    arithmetic as an image of its own, and four together take half the time of four in turn.
    """

    def __init__(
        self, size_pixels: int, method: Literal["area", "bilinear"], screen_shape: tuple[int, int]
    ) -> None:
        self._size = (size_pixels, size_pixels)
        self._interpolation = _INTERPOLATION[method]
        channels = range(_MAX_CHANNELS + 1)
        self._merged = [np.zeros((*screen_shape, count), np.uint8) for count in channels]
        self._resized = [np.zeros((*self._size, count), np.uint8) for count in channels]

    def resize(self, screens: Sequence[UInt8[np.ndarray, "h w"]], frames: UInt8[np.ndarray, "E H W"]) -> None:
        """Write each screen, scaled, into the frame of its place."""
        for begin in range(0, len(screens), _MAX_CHANNELS):
            together = screens[begin : begin + _MAX_CHANNELS]
            if len(together) == 1:
                self._scale(together[0], frames[begin])
            else:
                self._resize_together(together, frames[begin : begin + _MAX_CHANNELS])

    def _resize_together(
        self, screens: Sequence[UInt8[np.ndarray, "h w"]], frames: UInt8[np.ndarray, "E H W"]
    ) -> None:
        merged, resized = self._merged[len(screens)], self._resized[len(screens)]
        cv2.merge(screens, merged)
        self._scale(merged, resized)
        cv2.split(resized, list(frames))

    def _scale(self, image: UInt8[np.ndarray, "h w ..."], out: UInt8[np.ndarray, "H W ..."]) -> None:
        cv2.resize(image, self._size, dst=out, interpolation=self._interpolation)
