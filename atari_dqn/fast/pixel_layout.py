"""Patches of pixels, in the memory order in which matrix products read them.

B batch, S stacked frames, H×W one frame, P patches of a stack, K = side² · S values in each.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from atari_dqn.minibatch import Frames

Patches = UInt8[Tensor, "B P K"] | Float[Tensor, "B P K"]
"""The patches of each stack; the values of a patch lie row by row, pixel by pixel."""


def channels_last(frames: Frames) -> Frames:
    """Convert frames to the channels-last memory format.

    On a CPU OpenCV interleaves them, ten times as fast as PyTorch copies.
    """
    if frames.device.type != "cpu" or frames.is_contiguous(memory_format=torch.channels_last):
        return frames.contiguous(memory_format=torch.channels_last)
    batch, stack, height, width = frames.shape
    pixels = torch.empty(batch, height, width, stack, dtype=frames.dtype)
    cv2.merge([frame.numpy() for frame in frames.flatten(2).unbind(1)], pixels.view(batch, -1, stack).numpy())
    return pixels.permute(0, 3, 1, 2)


def patches(frames: Frames, sides: tuple[int, ...]) -> Patches:
    """Cut frames into the patches of a stack of convolutions whose kernels do not overlap.

    `sides` has the kernel size of each layer. The patches of one kernel of the second layer are consecutive,
    row by row, and so on for later layers, so that the output of each layer, reshaped, is the input of the
    next product. Pixels that do not reach the last layer's output are left out.
    """
    batch, stack, height, width = frames.shape
    side = sides[0]
    pixels = channels_last(frames).permute(0, 2, 3, 1)
    # a view of every horizontal run of `side` pixels; index_select copies the runs of the patches
    runs = pixels.as_strided((pixels.numel() // stack - side + 1, side * stack), (stack, 1))
    chosen = runs.index_select(0, _runs(batch, height, width, sides))
    return chosen.view(batch, -1, side * side * stack)


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # evaluation fills the cache in inference mode, training uses it
def _runs(batch: int, height: int, width: int, sides: tuple[int, ...]) -> Int64[Tensor, "N"]:
    """List the first pixel of each run of `sides[0]` pixels, in the order of `patches`."""
    of_frame = torch.arange(height * width).view(height, width)
    for side in sides:
        of_frame = _blocks(of_frame, side)
    first_of_frame = torch.arange(0, batch * height * width, height * width)
    return (first_of_frame[:, None] + of_frame[..., :: sides[0]].flatten()).flatten()


def _blocks(grid: Int64[Tensor, "H W *inside"], side: int) -> Int64[Tensor, "H2 W2 N"]:
    """Group a grid in blocks of side × side entries, flattened row by row; incomplete blocks are dropped."""
    rows, columns = len(grid) // side, grid.shape[1] // side
    split = grid[: rows * side, : columns * side].reshape(rows, side, columns, side, -1)
    return split.transpose(1, 2).flatten(2)
