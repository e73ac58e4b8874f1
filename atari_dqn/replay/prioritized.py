"""Proportional prioritized sampling. Schaul et al. (2016), Algorithm 1."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.minibatch import to_device
from atari_dqn.replay.priority_tree import PriorityTree
from atari_dqn.replay.sampler import Sampler
from atari_dqn.rng import restore_generator
from atari_dqn.schedule import LinearSchedule
from atari_dqn.types import StateDict

_REMOVED, _LARGEST = 0.0, math.nan
"""What stands for p^α of an index that was removed, and of one that has the largest priority so far."""


class MakeTree(Protocol):
    """A constructor of trees of priorities."""

    def __call__(self, capacity: int, *, device: torch.device) -> PriorityTree:
        """Create a tree of `capacity` priorities of 0."""
        ...


class PrioritizedSampler(Sampler):
    """Samples indices with probability p^α / Σ p^α, one from each of B equal strata, **with replacement**.

    p is |TD error| + `priority_offset`. New indices without an error get the largest p^α so far, so that they
    are soon sampled. Indices without a complete transition have priority 0 and are never sampled, so that no
    draw is rejected. If P is the probability, the importance weights are (N P)^−β, divided by the largest
    weight of the **whole buffer**, which belongs to its smallest priority, or, with `weights_per_minibatch`,
    by the largest of the minibatch.

    Additions and removals are collected until the next draw or update, so that several steps need only one
    pass through the tree.
    """

    def __init__(
        self,
        *,
        capacity: int,
        batch_size: int,
        alpha: float,
        beta: LinearSchedule,
        priority_offset: float,
        seed: int,
        device: torch.device,
        make_tree: MakeTree = PriorityTree,
        weights_per_minibatch: bool = False,
    ) -> None:
        super().__init__(batch_size=batch_size, seed=seed, device=device)
        self.alpha, self.beta, self.priority_offset = alpha, beta, priority_offset
        self.tree = make_tree(capacity, device=device)
        self._weights_per_minibatch = weights_per_minibatch
        self.highest = torch.ones((), dtype=torch.float64, device=device)
        self._exponent = torch.zeros((), dtype=torch.float64, device=device)
        """−β at the frame of the latest `prepare`, on the device, where draws read it."""
        self._pending: dict[int, float] = {}
        """p^α of the indices added since the tree was last updated, `_REMOVED` or `_LARGEST`."""
        self._largest_added = 0.0
        """The largest p^α of the errors of added indices."""

    def add(self, indices: Int64[Tensor, "n"], error: Float[Tensor, "n"] | None = None) -> None:
        """Add indices with the priorities of their errors, or with the largest priority so far."""
        powers = [_LARGEST] * len(indices) if error is None else self._powers(error)
        self._pending.update(zip(indices.tolist(), powers, strict=True))
        self.count += len(indices)

    def drop(self, indices: Int64[Tensor, "n"]) -> None:
        """Remove indices."""
        assert len(indices) <= self.count
        self._pending.update(dict.fromkeys(indices.tolist(), _REMOVED))
        self.count -= len(indices)

    def indices_and_weights(
        self, unit: Float64[Tensor, "M B"]
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Find the index that each number in [0, 1) selects in its stratum, and its importance weight."""
        indices, weights = self.tree.draw(unit, self._exponent)
        if self._weights_per_minibatch:
            weights = weights / weights.amax(dim=1, keepdim=True)
        return indices, weights

    def update_priorities(self, indices: Int64[Tensor, "B"], error: Float[Tensor, "B"]) -> None:
        """Set the priorities of sampled indices; if an index was sampled twice, its larger error counts.

        Errors that are not finite are ignored, as are errors of indices that were removed.
        """
        self._apply_pending()
        self.tree.set_by_errors(
            indices, error, offset=self.priority_offset, alpha=self.alpha, highest=self.highest
        )

    def mutated_tensors(self) -> list[Tensor]:
        """Return the tree's tables and the highest priority."""
        return [*self.tree.sums, *self.tree.minima, self.highest]

    def valid_indices(self) -> Int64[Tensor, "n"]:
        """Return all indices that can be sampled."""
        self._apply_pending()
        return self.tree.positive()

    def priorities(self) -> Float64[Tensor, "n"]:
        """Return p^α of each index that can be sampled."""
        return self.tree.get(self.valid_indices())

    def beta_at(self, env_frames: int) -> float:
        """Return β after `env_frames` emulator frames."""
        return self.beta.at(env_frames)

    def state_dict(self) -> StateDict:
        """Return the priorities, the largest priority so far and the random stream."""
        self._apply_pending()
        return {
            "tree": self.tree.state_dict(),
            "highest": self.highest.clone(),
            "count": self.count,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore priorities and random stream; `ValueError` for invalid priorities."""
        if not (math.isfinite(state["highest"]) and state["highest"] > 0):
            raise ValueError(f"replay.sampler.highest: found {state['highest']}, expected a positive number")
        self._pending.clear()
        self.tree.load_state_dict(state["tree"])
        self.highest.copy_(torch.as_tensor(state["highest"]))
        self.count = state["count"]
        restore_generator(self.generator, state["generator"])

    def _update_device_tensors(self, env_frames: int) -> None:
        self._apply_pending()
        self._exponent.fill_(-self.beta.at(env_frames))

    def _powers(self, error: Float[Tensor, "n"]) -> list[float]:
        """Compute p^α of errors; `_LARGEST` where an error is not finite.

        Each is computed on its own, so that its rounding does not depend on how many are added at once: torch
        computes values that are contiguous in memory several at a time, to another last bit.
        """
        apart = torch.empty((len(error), 2), dtype=torch.float64)[:, 0]
        powers = torch.add(error.double(), self.priority_offset, out=apart).pow(self.alpha)
        powers = powers.masked_fill(~powers.isfinite(), _LARGEST)
        self._largest_added = max([self._largest_added, *powers[~powers.isnan()].tolist()])
        found: list[float] = powers.tolist()
        return found

    def _apply_pending(self) -> None:
        """Update the tree with the indices that were added or removed."""
        if not self._pending:
            return
        indices = to_device(torch.tensor(list(self._pending)), self.device)
        powers = to_device(torch.tensor(list(self._pending.values()), dtype=torch.float64), self.device)
        if self._largest_added:
            self.highest.clamp_(min=self._largest_added)
        self.tree.set(indices, torch.where(powers.isnan(), self.highest, powers))
        self._pending.clear()
