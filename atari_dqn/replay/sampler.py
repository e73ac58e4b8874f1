"""The interface of samplers, which sample from the indices of complete transitions.

Indices are added and removed on the host, between updates. `prepare` then updates the tensors on the device,
including counts and exponents. The operations after it, `draw` and `update_priorities`, have fixed shapes and
need no synchronisation of host and device, so that they can be captured in a CUDA graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.types import StateDict


class Sampler(ABC):
    """Samples indices, which are added and later removed in the order of their steps."""

    def __init__(self, *, batch_size: int, seed: int, device: torch.device) -> None:
        self.batch_size, self.device = batch_size, device
        self.count = 0
        """Number of indices that can be sampled."""
        self.generator = torch.Generator(device=device).manual_seed(seed)

    @abstractmethod
    def add(self, indices: Int64[Tensor, "n"], error: Float[Tensor, "n"] | None = None) -> None:
        """Add indices, given on the host, whose n-step window is complete.

        `error`: the absolute errors of their first priorities, where actors computed them.
        """

    @abstractmethod
    def drop(self, indices: Int64[Tensor, "n"]) -> None:
        """Remove the indices that were added first, because their frames will be overwritten."""

    def prepare(self, env_frames: int) -> None:
        """Update the tensors that `draw` reads after additions and removals, with β at `env_frames`."""
        assert self.count > 0, "nothing to draw from"
        self._update_device_tensors(env_frames)

    def draw(self) -> tuple[Int64[Tensor, "B"], Float[Tensor, "B"]]:
        """Sample the indices of a minibatch and their importance weights."""
        unit = torch.rand(
            1, self.batch_size, generator=self.generator, dtype=torch.float64, device=self.device
        )
        indices, weights = self.indices_and_weights(unit)
        return indices[0], weights[0]

    @abstractmethod
    def indices_and_weights(
        self, unit: Float64[Tensor, "M B"]
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Compute the indices and weights of M minibatches from random numbers in [0, 1).

        `draw` calls it with numbers of the sampler's stream; it does not advance the stream itself.
        """

    @abstractmethod
    def update_priorities(self, indices: Int64[Tensor, "B"], error: Float[Tensor, "B"]) -> None:
        """Update the priorities of sampled indices by their errors."""

    @abstractmethod
    def mutated_tensors(self) -> list[Tensor]:
        """Return the tensors that `draw` and `update_priorities` change."""

    @abstractmethod
    def valid_indices(self) -> Int64[Tensor, "n"]:
        """Return all indices that can be sampled, for checks and diagnostics."""

    @abstractmethod
    def priorities(self) -> Float64[Tensor, "n"]:
        """Return the unnormalised sampling probability of each index, in the order of `valid_indices`."""

    @abstractmethod
    def beta_at(self, env_frames: int) -> float:
        """Return β, the exponent of the importance weights, after `env_frames` emulator frames."""

    @abstractmethod
    def state_dict(self) -> StateDict:
        """Return indices, priorities and the random stream as plain data."""

    @abstractmethod
    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state returned by `state_dict`."""

    @abstractmethod
    def _update_device_tensors(self, env_frames: int) -> None:
        """Update the tensors on the device that the next draws read."""
