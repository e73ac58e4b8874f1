"""A priority tree that is computed by kernels (docs/decisions/0034)."""

from __future__ import annotations

import ctypes

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.fast.cpu.library import library, pointers
from atari_dqn.replay.priority_tree import FAN_OUT, PriorityTree


class KernelTree(PriorityTree):
    """A `PriorityTree` on a CPU. For a minibatch, kernels are much faster than operations on each level.

    An index outside the tree raises `IndexError` and changes nothing.
    """

    def __init__(self, capacity: int, *, device: torch.device, fan_out: int = FAN_OUT) -> None:
        super().__init__(capacity, device=device, fan_out=fan_out)
        kernels = library("portable")
        assert kernels is not None
        self._kernels: ctypes.CDLL = kernels
        self._tree = pointers(self.sums), pointers(self.minima), len(self.sums), fan_out

    def set(self, indices: Int64[Tensor, "n"], priorities: Float64[Tensor, "n"]) -> None:
        """Set priorities; an index that occurs twice must have the same priority both times."""
        assert (indices.dtype, priorities.dtype) == (torch.int64, torch.float64)
        assert indices.shape == priorities.shape == indices.shape[:1]
        indices, priorities = indices.contiguous(), priorities.contiguous()
        leaves, count = len(self.sums[0]), len(indices)
        if not self._kernels.set_priorities(
            *self._tree, leaves, indices.data_ptr(), priorities.data_ptr(), count
        ):
            raise _not_of_the_tree(indices, leaves)

    def find(self, mass: Float64[Tensor, "B"]) -> Int64[Tensor, "B"]:
        """Find the index at which the cumulative sum of priorities exceeds each mass, 0 ≤ mass < total."""
        assert (mass.dtype, mass.dim()) == (torch.float64, 1)
        mass, indices = mass.contiguous(), torch.empty(mass.shape, dtype=torch.int64)
        sums, _, levels, fan_out = self._tree
        self._kernels.find_indices(sums, levels, fan_out, mass.data_ptr(), len(mass), indices.data_ptr())
        return indices

    def draw(
        self, unit: Float64[Tensor, "M B"], exponent: Float64[Tensor, ""]
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Draw an index from each of B strata, by a number in [0, 1), and compute its importance weight."""
        assert unit.dtype == torch.float64
        unit, indices = unit.contiguous(), torch.empty(unit.shape, dtype=torch.int64)
        weights = torch.empty(unit.shape)
        self._kernels.draw_indices(
            *self._tree, unit.data_ptr(), *unit.shape, float(exponent), indices.data_ptr(), weights.data_ptr()
        )
        return indices, weights

    def set_by_errors(
        self,
        indices: Int64[Tensor, "B"],
        error: Float[Tensor, "B"],
        *,
        offset: float,
        alpha: float,
        highest: Float64[Tensor, ""],
    ) -> None:
        """Set the priorities (error + offset)^α, the larger if an index occurs twice; update `highest`."""
        assert (indices.dtype, error.dtype, highest.dtype) == (torch.int64, torch.float32, torch.float64)
        assert indices.shape == error.shape == indices.shape[:1]
        indices, error = indices.contiguous(), error.contiguous()
        leaves, count = len(self.sums[0]), len(indices)
        if not self._kernels.set_by_errors(
            *self._tree,
            leaves,
            indices.data_ptr(),
            error.data_ptr(),
            count,
            offset,
            alpha,
            highest.data_ptr(),
        ):
            raise _not_of_the_tree(indices, leaves)


def _not_of_the_tree(indices: Int64[Tensor, "n"], leaves: int) -> IndexError:
    return IndexError(f"expected indices from 0 to {leaves - 1}, found {indices.tolist()}")
