"""Pixels in the order in memory that products with patches read. B batch, S stacked frames, H×W one frame.

P patches of a stack, K = side² · S values in each.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from atari_dqn.minibatch import Frames

Patches = UInt8[Tensor, "B P K"] | Float[Tensor, "B P K"]
"""A stack in patches, the K = side² · S values of each row by row, pixel by pixel."""


def channels_last(frames: Frames) -> Frames:
    """Put the S values of a pixel side by side in memory; the frames are the same.

    In RAM OpenCV interleaves, ten times as fast as a copy by PyTorch.
    """
    if frames.device.type != "cpu" or frames.is_contiguous(memory_format=torch.channels_last):
        return frames.contiguous(memory_format=torch.channels_last)
    batch, stack, height, width = frames.shape
    pixels = torch.empty(batch, height, width, stack, dtype=frames.dtype)
    cv2.merge([frame.numpy() for frame in frames.flatten(2).unbind(1)], pixels.view(batch, -1, stack).numpy())
    return pixels.permute(0, 3, 1, 2)


def patches(frames: Frames, sides: tuple[int, ...]) -> Patches:
    """Cut frames into the inputs of a chain of layers whose kernels do not overlap, `sides` pixels a side.

    Patches that belong to one kernel of the second layer follow each other, row by row, and so on: what a
    layer puts out is, read on, what the next one's kernels see. Pixels that the last layer does not see are
    left out.
    """
    batch, stack, height, width = frames.shape
    side = sides[0]
    pixels = channels_last(frames).permute(0, 2, 3, 1)
    # every run of `side` pixels there is, overlapping: what is chosen of them is copied, a run at a time
    runs = pixels.as_strided((pixels.numel() // stack - side + 1, side * stack), (stack, 1))
    chosen = runs.index_select(0, _runs(batch, height, width, sides))
    return chosen.view(batch, -1, side * side * stack)


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # what an evaluation makes, learning uses
def _runs(batch: int, height: int, width: int, sides: tuple[int, ...]) -> Int64[Tensor, "N"]:
    """Return the first pixel of each run of `sides[0]` pixels, in the order that `patches` has them."""
    of_frame = torch.arange(height * width).view(height, width)
    for side in sides:
        of_frame = _blocks(of_frame, side)
    first_of_frame = torch.arange(0, batch * height * width, height * width)
    return (first_of_frame[:, None] + of_frame[..., :: sides[0]].flatten()).flatten()


def _blocks(cells: Int64[Tensor, "H W *inside"], side: int) -> Int64[Tensor, "H2 W2 N"]:
    """Return what is in each block of side × side cells, row by row, cell by cell; no part of a block."""
    rows, columns = len(cells) // side, cells.shape[1] // side
    split = cells[: rows * side, : columns * side].reshape(rows, side, columns, side, -1)
    return split.transpose(1, 2).flatten(2)
