"""The tree of priorities by the project's own kernels, node by node (docs/decisions/0034)."""

from __future__ import annotations

import ctypes

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.fast.cpu.library import library, pointers
from atari_dqn.replay.priority_tree import FAN_OUT, PriorityTree


class KernelTree(PriorityTree):
    """A tree on a CPU: for some dozens of cells, kernels do far less than operations on each level's columns.

    A cell that is none of the tree's is an `IndexError`, and changes nothing.
    """

    def __init__(self, capacity: int, *, device: torch.device, fan_out: int = FAN_OUT) -> None:
        super().__init__(capacity, device=device, fan_out=fan_out)
        kernels = library("portable")
        assert kernels is not None
        self._kernels: ctypes.CDLL = kernels
        self._tree = pointers(self.sums), pointers(self.minima), len(self.sums), fan_out

    def set(self, cells: Int64[Tensor, "n"], priorities: Float64[Tensor, "n"]) -> None:
        """Give cells their priorities; a cell named twice has the same one both times."""
        assert (cells.dtype, priorities.dtype) == (torch.int64, torch.float64)
        assert len(cells) == len(priorities)
        cells, priorities = cells.contiguous(), priorities.contiguous()
        leaves, count = len(self.sums[0]), len(cells)
        if not self._kernels.set_priorities(
            *self._tree, leaves, cells.data_ptr(), priorities.data_ptr(), count
        ):
            raise _not_of_the_tree(cells, leaves)

    def find(self, mass: Float64[Tensor, "B"]) -> Int64[Tensor, "B"]:
        """Return the cell in which the running sum of priorities passes each mass, 0 ≤ mass < total."""
        assert mass.dtype == torch.float64
        mass, cells = mass.contiguous(), torch.empty(mass.shape, dtype=torch.int64)
        sums, _, levels, fan_out = self._tree
        self._kernels.find_cells(sums, levels, fan_out, mass.data_ptr(), len(mass), cells.data_ptr())
        return cells

    def draw(
        self, unit: Float64[Tensor, "M B"], exponent: Float64[Tensor, ""]
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Return the cell that each number in [0, 1) falls on in its stratum, one of B, and its weight."""
        assert unit.dtype == torch.float64
        unit, cells = unit.contiguous(), torch.empty(unit.shape, dtype=torch.int64)
        weights = torch.empty(unit.shape)
        self._kernels.draw_cells(
            *self._tree, unit.data_ptr(), *unit.shape, float(exponent), cells.data_ptr(), weights.data_ptr()
        )
        return cells, weights

    def set_by_errors(
        self,
        cells: Int64[Tensor, "B"],
        error: Float[Tensor, "B"],
        *,
        offset: float,
        alpha: float,
        highest: Float64[Tensor, ""],
    ) -> None:
        """Set drawn cells to (error + offset)^α, of two errors the larger; raise `highest`."""
        assert (cells.dtype, error.dtype, highest.dtype) == (torch.int64, torch.float32, torch.float64)
        assert len(cells) == len(error)
        cells, error = cells.contiguous(), error.contiguous()
        leaves, count = len(self.sums[0]), len(cells)
        if not self._kernels.set_by_errors(
            *self._tree, leaves, cells.data_ptr(), error.data_ptr(), count, offset, alpha, highest.data_ptr()
        ):
            raise _not_of_the_tree(cells, leaves)


def _not_of_the_tree(cells: Int64[Tensor, "n"], leaves: int) -> IndexError:
    return IndexError(f"expected cells from 0 to {leaves - 1}, found {cells.tolist()}")
