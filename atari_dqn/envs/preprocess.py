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

    def __init__(self, size_pixels: int, method: Literal["area", "bilinear"]) -> None:
        self._size = (size_pixels, size_pixels)
        self._interpolation = _INTERPOLATION[method]

    def resize(self, screens: Sequence[UInt8[np.ndarray, "h w"]], frames: UInt8[np.ndarray, "E H W"]) -> None:
        """Write each screen, scaled, into the frame of its place."""
        for begin in range(0, len(screens), _MAX_CHANNELS):
            end = min(begin + _MAX_CHANNELS, len(screens))
            if end - begin == 1:
                self._resize(screens[begin], frames[begin])
            else:
                channels = self._resize(cv2.merge(screens[begin:end]), None)
                cv2.split(channels, list(frames[begin:end]))

    def _resize(
        self, image: UInt8[np.ndarray, "h w ..."], out: UInt8[np.ndarray, "H W"] | None
    ) -> UInt8[np.ndarray, "H W ..."]:
        return cv2.resize(image, self._size, dst=out, interpolation=self._interpolation)
