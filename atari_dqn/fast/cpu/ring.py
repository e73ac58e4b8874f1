"""A ring of frames in RAM whose stacks are gathered by a kernel."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from atari_dqn.fast.cpu.library import library
from atari_dqn.replay.ring import FrameRing


class KernelRing(FrameRing):
    """A `FrameRing` on a CPU. An index outside the ring raises `IndexError`."""

    def __init__(self, **sizes: Any) -> None:
        super().__init__(**sizes)
        kernels = library("portable")
        assert kernels is not None
        self._kernels = kernels

    def stacks(self, indices: Int64[Tensor, "B"]) -> UInt8[Tensor, "B S H W"]:
        """Gather the stack that ends at each index; frames before the episode's start are zero."""
        assert indices.dtype == torch.int64
        indices = indices.contiguous()
        stacks = torch.empty((len(indices), self.stack, *self.frame.shape[1:]), dtype=torch.uint8)
        sizes = (self.zero_cell, self.num_envs, self.stack, self.frame[0].numel())
        tables = self.frame.data_ptr(), self.start.data_ptr()
        if not self._kernels.gather_stacks(
            *tables, *sizes, indices.data_ptr(), len(indices), stacks.data_ptr()
        ):
            raise IndexError(f"expected indices from 0 to {self.zero_cell - 1}, found {indices.tolist()}")
        return stacks
