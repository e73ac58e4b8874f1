"""A ring of frames in RAM whose stacks are gathered by a kernel."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from atari_dqn.fast.cpu.library import library
from atari_dqn.replay.ring import FrameRing


class KernelRing(FrameRing):
    """A `FrameRing` on a CPU. Raise `IndexError` for an index outside the ring."""

    def __init__(self, **sizes: Any) -> None:
        super().__init__(**sizes)
        kernels = library("portable")
        assert kernels is not None
        self._kernels = kernels

    def stacks(self, index: Int64[Tensor, "B"]) -> UInt8[Tensor, "B S H W"]:
        """Gather the stack that ends at each index, zero before the first frame of its episode."""
        assert index.dtype == torch.int64
        index = index.contiguous()
        stacks = torch.empty((len(index), self.stack, *self.frame.shape[1:]), dtype=torch.uint8)
        sizes = (self.zero_index, self.stride, self.stack, self.frame[0].numel())
        tables = self.frame.data_ptr(), self.start.data_ptr()
        if not self._kernels.gather_stacks(*tables, *sizes, index.data_ptr(), len(index), stacks.data_ptr()):
            raise IndexError(f"expected indices from 0 to {self.zero_index - 1}, found {index.tolist()}")
        return stacks
