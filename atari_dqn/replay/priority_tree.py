"""Sums and minima of many priorities, kept exact: a tree of large fan-out for vector code.

Level 0 holds a leaf per cell; each node above holds the sum (and the minimum) of F children:

    level 2                    [ Σ ]
    level 1           [ Σ ][ Σ ] … [ Σ ]           F nodes
    level 0       [p p … p][p p … p] … [p p … p]   F² leaves

A parent is always recomputed from its children, never corrected by a difference, so it cannot drift. F is
large because a level costs a few vector operations whatever F is (docs/decisions/0009-priority-tree.md).
On a CPU the project's own kernels read and write the nodes where they were compiled (0034).
"""

from __future__ import annotations

import ctypes

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from atari_dqn.kernels.library import library, pointers
from atari_dqn.types import StateDict

FAN_OUT = 32


class PriorityTree:
    """Priorities ≥ 0 of `capacity` cells in fp64; a cell of priority 0 is never found.

    Invariant: every node is the sum, and the minimum over positive leaves, of its children.
    """

    def __init__(self, capacity: int, *, device: torch.device, fan_out: int = FAN_OUT) -> None:
        self.fan_out = fan_out
        depth = 1
        while fan_out**depth < capacity:
            depth += 1
        sizes = [-(-capacity // fan_out**level) for level in range(depth)]
        padded = [-(-size // fan_out) * fan_out for size in sizes]
        self.sums = [torch.zeros(size, dtype=torch.float64, device=device) for size in [*padded, 1]]
        self.minima = [torch.full_like(level, torch.inf) for level in self.sums]
        self._zero = torch.zeros((), dtype=torch.float64, device=device)
        self._kernels = library("portable") if device.type == "cpu" else None
        self._tables = pointers(self.sums), pointers(self.minima)
        self._sizes = len(self.sums), fan_out

    @property
    def total(self) -> Float64[Tensor, ""]:
        """Sum of all priorities."""
        return self.sums[-1][0]

    @property
    def smallest(self) -> Float64[Tensor, ""]:
        """Smallest priority that is not 0; infinity where all are 0."""
        return self.minima[-1][0]

    def set(self, cells: Int64[Tensor, "n"], priorities: Float64[Tensor, "n"]) -> None:
        """Give cells their priorities; a cell named twice has the same one both times."""
        if self._kernels is not None:
            self._set_by(self._kernels, cells.contiguous(), priorities.contiguous())
            return
        self.sums[0].index_copy_(0, cells, priorities)
        stored = self.sums[0].index_select(0, cells)
        self.minima[0].index_copy_(0, cells, stored.masked_fill_(stored == 0, torch.inf))
        nodes = cells
        for level in range(len(self.sums) - 1):
            nodes = nodes // self.fan_out
            sums = self._children(self.sums[level]).index_select(0, nodes).sum(dim=1)
            minima = self._children(self.minima[level]).index_select(0, nodes).amin(dim=1)
            self.sums[level + 1].index_copy_(0, nodes, sums)
            self.minima[level + 1].index_copy_(0, nodes, minima)

    def get(self, cells: Int64[Tensor, "n"]) -> Float64[Tensor, "n"]:
        """Return the priorities of cells."""
        return self.sums[0].index_select(0, cells)

    def find(self, mass: Float64[Tensor, "B"]) -> Int64[Tensor, "B"]:
        """Return the cell in which the running sum of priorities passes each mass, 0 ≤ mass < total."""
        if self._kernels is not None:
            return self._found_by(self._kernels, mass.contiguous())
        left, nodes = mass[:, None], torch.zeros_like(mass, dtype=torch.int64)
        for level in reversed(self.sums[:-1]):
            children = self._children(level).index_select(0, nodes)
            # A child of 0 is never the one that passes a mass, in whatever order the device adds.
            running = children.cumsum(dim=1).masked_fill_(children == 0, -torch.inf)
            # Rounding may leave a mass at or past its node's sum: the last child with priority has it then.
            left = torch.minimum(left, torch.nextafter(running.amax(dim=1, keepdim=True), self._zero))
            child = (running > left).view(torch.uint8).argmax(dim=1, keepdim=True)
            left = left - running.gather(1, child) + children.gather(1, child)
            nodes = nodes * self.fan_out + child.squeeze(1)
        return nodes

    def positive(self) -> Int64[Tensor, "n"]:
        """Return every cell whose priority is not 0."""
        return torch.nonzero(self.sums[0]).squeeze(1)

    def state_dict(self) -> StateDict:
        """Return every level of sums. Minima are exact whatever the order, and are made again from them."""
        return {"sums": list(self.sums)}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over the sums to the last bit: made again, they might round differently."""
        for level, stored in zip(self.sums, state["sums"], strict=True):
            level.copy_(torch.as_tensor(stored))
        self.minima[0].copy_(torch.where(self.sums[0] > 0, self.sums[0], torch.inf))
        for level, above in zip(self.minima, self.minima[1:], strict=False):
            minima = self._children(level).amin(dim=1)
            above[: len(minima)] = minima

    def check(self) -> None:
        """Assert the invariant; tests call it after every change."""
        anew = PriorityTree(len(self.sums[0]), device=self.sums[0].device, fan_out=self.fan_out)
        anew.set(torch.arange(len(self.sums[0]), device=self.sums[0].device), self.sums[0])
        for found, expected in zip([*self.sums, *self.minima], [*anew.sums, *anew.minima], strict=True):
            assert torch.equal(found, expected)

    def _set_by(
        self, kernels: ctypes.CDLL, cells: Int64[Tensor, "n"], priorities: Float64[Tensor, "n"]
    ) -> None:
        assert (cells.dtype, priorities.dtype) == (torch.int64, torch.float64)
        leaves = len(self.sums[0])
        assert len(priorities) == len(cells)
        if not kernels.set_priorities(
            *self._tables, *self._sizes, leaves, cells.data_ptr(), priorities.data_ptr(), len(cells)
        ):
            raise IndexError(f"expected cells from 0 to {leaves - 1}, found {cells.tolist()}")

    def _found_by(self, kernels: ctypes.CDLL, mass: Float64[Tensor, "B"]) -> Int64[Tensor, "B"]:
        assert mass.dtype == torch.float64
        cells = torch.empty_like(mass, dtype=torch.int64)
        kernels.find_cells(self._tables[0], *self._sizes, mass.data_ptr(), len(mass), cells.data_ptr())
        return cells

    def _children(self, level: Float64[Tensor, "n"]) -> Float64[Tensor, "m F"]:
        return level.view(-1, self.fan_out)
