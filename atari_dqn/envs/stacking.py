"""Stacked frames for environments that have no replay: evaluation, videos, and other people's agents."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from atari_dqn.types import StepBatch


class FrameStacker:
    """Keeps each environment's newest S frames, zero before its episode's first.

    frames   A   B | C   D   E      | = an episode's start
    stack of D (S = 4):   ·   ·   C   D
    """

    def __init__(self, *, envs: int, stack: int, frame_shape: tuple[int, int]) -> None:
        self.frames: UInt8[np.ndarray, "E S H W"] = np.zeros((envs, stack, *frame_shape), dtype=np.uint8)

    def push(self, step: StepBatch) -> UInt8[np.ndarray, "E S H W"]:
        """Take one step of every environment and return the stacks; the array is reused by the next push."""
        self.frames[:, :-1] = self.frames[:, 1:]
        self.frames[step.first, :-1] = 0
        self.frames[:, -1] = step.frame
        return self.frames
