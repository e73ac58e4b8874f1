"""The shapes of convolutions as the kernels read them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache

from atari_dqn.fast.cpu.library import integers

Size = tuple[int, ...]
Zeros = Sequence[int]
"""Padding above, below, left and right of an image."""


@lru_cache(maxsize=64)
def shapes_of(
    size: Size, weights: tuple[Size, ...], strides: tuple[int, ...], zeros: tuple[int, ...]
) -> tuple[ctypes.Array[ctypes.c_int64], list[Size]]:
    """Compute the C array of a stack's shapes, layer by layer, and the output size of each layer."""
    shapes: list[int] = []
    sizes: list[Size] = []
    for place, weight in enumerate(weights):
        numbers, size = shape_of(size, weight, strides[place], zeros[4 * place : 4 * place + 4])
        shapes += numbers
        sizes.append(size)
    return integers(shapes), sizes


def shape_of(size: Size, weight: Size, stride: int, zeros: Zeros) -> tuple[Size, Size]:
    """Compute a convolution's numbers in the kernels' order, and its output size.

    `ValueError` if the output is empty or the channels do not match.
    """
    batch, channels, height, width = size
    filters, channels_of_weight, high, wide = weight
    above, below, left, right = zeros
    numbers = (batch, height, width, channels, high, wide, stride, above, below, left, right, filters)
    out_height = (height + above + below - high) // stride + 1
    out_width = (width + left + right - wide) // stride + 1
    if channels != channels_of_weight or min(batch, out_height, out_width) < 1:
        found, kernel = tuple(size), tuple(weight)
        raise ValueError(
            f"images of size {found} are too small or have wrong channels for weights of {kernel}"
        )
    return numbers, (batch, filters, out_height, out_width)
