"""What kernels are told of a convolution's shape: numbers in the order that they read them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache

from atari_dqn.fast.cpu.library import integers

Size = tuple[int, ...]
Zeros = Sequence[int]
"""How many zeros are put above, below, left and right of an image."""


@lru_cache(maxsize=64)
def shapes_of(
    size: Size, weights: tuple[Size, ...], strides: tuple[int, ...], zeros: tuple[int, ...]
) -> tuple[ctypes.Array[ctypes.c_int64], list[Size]]:
    """Return a chain's numbers as the kernels read them, layer after layer, and what size each puts out."""
    shapes: list[int] = []
    sizes: list[Size] = []
    for place, weight in enumerate(weights):
        numbers, size = shape_of(size, weight, strides[place], zeros[4 * place : 4 * place + 4])
        shapes += numbers
        sizes.append(size)
    return integers(shapes), sizes


def shape_of(size: Size, weight: Size, stride: int, zeros: Zeros) -> tuple[Size, Size]:
    """Return a convolution's numbers in the order that the kernels read them, and the size it puts out.

    `ValueError` where there is nothing to put out, or channels do not fit.
    """
    batch, channels, height, width = size
    filters, channels_of_weight, high, wide = weight
    above, below, left, right = zeros
    numbers = (batch, height, width, channels, high, wide, stride, above, below, left, right, filters)
    out_height = (height + above + below - high) // stride + 1
    out_width = (width + left + right - wide) // stride + 1
    if channels != channels_of_weight or min(batch, out_height, out_width) < 1:
        found, kernel = tuple(size), tuple(weight)
        raise ValueError(f"found images of {found}, too small or not for weights of {kernel}")
    return numbers, (batch, filters, out_height, out_width)


def around(padding: Sequence[int]) -> Zeros:
    """Return the zeros on four sides, given those above and left, as PyTorch has them."""
    return padding[0], padding[0], padding[1], padding[1]
