"""A tree of the sums and minima of many priorities, with a large fan-out F for vectorised operations.

Level 0 has a leaf for each index; each node above has the sum and the minimum of its F children:

    level 2                    [ Σ ]
    level 1           [ Σ ][ Σ ] … [ Σ ]           F nodes
    level 0       [p p … p][p p … p] … [p p … p]   F² leaves

A parent is always recomputed from its children, never corrected by a difference, so it cannot drift. F is
large because a level costs a few vector operations whatever F is (docs/decisions/0009-priority-tree.md).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.types import StateDict

FAN_OUT = 32


class PriorityTree:
    """Priorities ≥ 0 of `capacity` indices in fp64; an index of priority 0 is never found.

    Invariant: every node has the sum of its children, and the minimum of its children that are not 0.
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

    @property
    def total(self) -> Float64[Tensor, ""]:
        """Sum of all priorities."""
        return self.sums[-1][0]

    @property
    def smallest(self) -> Float64[Tensor, ""]:
        """Smallest priority that is not 0; infinity if all are 0."""
        return self.minima[-1][0]

    def set(self, indices: Int64[Tensor, "n"], priorities: Float64[Tensor, "n"]) -> None:
        """Set the priorities of indices; an index may occur twice with the same priority."""
        self.sums[0].index_copy_(0, indices, priorities)
        stored = self.sums[0].index_select(0, indices)
        self.minima[0].index_copy_(0, indices, stored.masked_fill_(stored == 0, torch.inf))
        nodes = indices
        for level in range(len(self.sums) - 1):
            nodes = nodes // self.fan_out
            sums = self._children(self.sums[level]).index_select(0, nodes).sum(dim=1)
            minima = self._children(self.minima[level]).index_select(0, nodes).amin(dim=1)
            self.sums[level + 1].index_copy_(0, nodes, sums)
            self.minima[level + 1].index_copy_(0, nodes, minima)

    def get(self, indices: Int64[Tensor, "n"]) -> Float64[Tensor, "n"]:
        """Return the priorities of indices."""
        return self.sums[0].index_select(0, indices)

    def find(self, mass: Float64[Tensor, "B"]) -> Int64[Tensor, "B"]:
        """Find the index at which the running sum of priorities exceeds each mass, 0 ≤ mass < total."""
        left, nodes = mass[:, None], torch.zeros_like(mass, dtype=torch.int64)
        for level in reversed(self.sums[:-1]):
            children = self._children(level).index_select(0, nodes)
            # A child of priority 0 is never selected, in whatever order the device adds.
            running = children.cumsum(dim=1).masked_fill_(children == 0, -torch.inf)
            # By rounding, a mass may reach its node's sum; then the last child with priority is selected.
            left = torch.minimum(left, torch.nextafter(running.amax(dim=1, keepdim=True), self._zero))
            child = (running > left).view(torch.uint8).argmax(dim=1, keepdim=True)
            left = left - running.gather(1, child) + children.gather(1, child)
            nodes = nodes * self.fan_out + child.squeeze(1)
        return nodes

    def draw(
        self, unit: Float64[Tensor, "M B"], exponent: Float64[Tensor, ""]
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Find the index that each number in [0, 1) selects in its stratum, one of B, and its weight.

        The weight is (priority / smallest priority) ** exponent.
        """
        batch_size = unit.shape[1]
        strata = torch.arange(batch_size, dtype=torch.float64, device=unit.device)
        mass = (strata + unit) * (self.total / batch_size)
        indices = self.find(mass.flatten())
        relative = self.get(indices) / self.smallest
        return indices.view_as(unit), relative.pow(exponent).float().view_as(unit)

    def set_by_errors(
        self,
        indices: Int64[Tensor, "B"],
        error: Float[Tensor, "B"],
        *,
        offset: float,
        alpha: float,
        highest: Float64[Tensor, ""],
    ) -> None:
        """Set the priorities of sampled indices to (error + offset)^α, and raise `highest` to the largest.

        If an index has two errors, the larger one counts. Errors that are not finite are ignored, as are
        errors of indices with priority 0.
        """
        found, present = (error.double() + offset).pow(alpha), self.get(indices)
        usable = found.isfinite() & (present > 0)
        largest = _largest_of_each(indices, torch.where(usable, found, -torch.inf))
        priorities = torch.where(largest.isfinite(), largest, present)
        torch.maximum(highest, priorities.amax(), out=highest)
        self.set(indices, priorities)

    def positive(self) -> Int64[Tensor, "n"]:
        """Return all indices whose priority is not 0."""
        return torch.nonzero(self.sums[0]).squeeze(1)

    def state_dict(self) -> StateDict:
        """Return the sums of every level; the minima are recomputed from the leaves exactly."""
        return {"sums": list(self.sums)}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the sums to the last bit, because recomputed ones might round differently.

        `ValueError` for invalid priorities, and for sums that differ from those of their children.
        """
        for level, stored in zip(self.sums, state["sums"], strict=True):
            level.copy_(torch.as_tensor(stored))
        if not (self.sums[0].isfinite() & (self.sums[0] >= 0)).all():
            raise ValueError("replay.sampler.tree: expected priorities of 0 or more")
        for level, above in zip(self.sums, self.sums[1:], strict=False):
            sums = self._children(level).sum(dim=1)
            if not torch.allclose(above[: len(sums)], sums) or above[len(sums) :].any():
                raise ValueError("replay.sampler.tree: a sum is not that of its children")
        self.minima[0].copy_(torch.where(self.sums[0] > 0, self.sums[0], torch.inf))
        for level, above in zip(self.minima, self.minima[1:], strict=False):
            minima = self._children(level).amin(dim=1)
            above[: len(minima)] = minima

    def check(self) -> None:
        """Assert the invariant; tests call it after every change."""
        anew = type(self)(len(self.sums[0]), device=self.sums[0].device, fan_out=self.fan_out)
        anew.set(torch.arange(len(self.sums[0]), device=self.sums[0].device), self.sums[0])
        for found, expected in zip([*self.sums, *self.minima], [*anew.sums, *anew.minima], strict=True):
            assert torch.equal(found, expected)

    def _children(self, level: Float64[Tensor, "n"]) -> Float64[Tensor, "m F"]:
        return level.view(-1, self.fan_out)


def _largest_of_each(indices: Int64[Tensor, "B"], values: Float64[Tensor, "B"]) -> Float64[Tensor, "B"]:
    """Compute for each position the largest value of its index, which may occur several times.

    The errors of two draws of an index differ if fractions, shifts or noise are random, and the order in
    which a GPU stores two values at one index is undefined.
    """
    same = indices[:, None] == indices
    return torch.where(same, values, -torch.inf).amax(dim=1)
