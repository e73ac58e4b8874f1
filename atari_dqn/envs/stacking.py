"""Stack the newest frames of each environment into an observation, in evaluation, videos and Gymnasium."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from atari_dqn.types import StepBatch


class FrameStacker:
    """The S newest frames of each environment; frames before the start of an episode are zero.

    frames   A   B | C   D   E      | = start of an episode
    stack of D (S = 4):   ·   ·   C   D      · = a zero frame
    """

    def __init__(self, *, envs: int, stack: int, frame_shape: tuple[int, int]) -> None:
        self.frames: UInt8[np.ndarray, "E S H W"] = np.zeros((envs, stack, *frame_shape), dtype=np.uint8)

    def push(self, step: StepBatch) -> UInt8[np.ndarray, "E S H W"]:
        """Append the frames of one step and return the stacks, an array that the next call overwrites."""
        self.frames[:, :-1] = self.frames[:, 1:]
        self.frames[step.first, :-1] = 0
        self.frames[:, -1] = step.frame
        return self.frames
