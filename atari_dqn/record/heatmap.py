"""Overlay a saliency heatmap on the screen."""

from __future__ import annotations

import cv2
import numpy as np
from jaxtyping import UInt8

_COLOUR = np.array((255, 50, 210), np.float32)
"""Magenta, which few games use."""
_OPACITY = 0.75


def overlay_heatmap(
    screen: UInt8[np.ndarray, "H W 3"], saliency: UInt8[np.ndarray, "G G"]
) -> UInt8[np.ndarray, "H W 3"]:
    """Blend the screen with magenta in proportion to the saliency."""
    height, width = screen.shape[:2]
    opacity = cv2.resize(saliency, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.float32)
    opacity = opacity[:, :, None] * (_OPACITY / 255)
    blended: np.ndarray = (screen * (1 - opacity) + _COLOUR * opacity).astype(np.uint8)
    return blended
