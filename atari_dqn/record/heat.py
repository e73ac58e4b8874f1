"""Saliency as a glow over the screen."""

from __future__ import annotations

import cv2
import numpy as np
from jaxtyping import UInt8

_GLOW = np.array((255, 50, 210), np.float32)
"""Magenta: few games have it."""
_OPACITY = 0.75


def heated(
    screen: UInt8[np.ndarray, "H W 3"], saliency: UInt8[np.ndarray, "G G"]
) -> UInt8[np.ndarray, "H W 3"]:
    """Return the screen with a glow where the saliency is high."""
    height, width = screen.shape[:2]
    cover = cv2.resize(saliency, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.float32)
    cover = cover[:, :, None] * (_OPACITY / 255)
    glowing: np.ndarray = (screen * (1 - cover) + _GLOW * cover).astype(np.uint8)
    return glowing
