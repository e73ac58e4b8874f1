"""Uniform sampling from a first-in, first-out list of the indices of transitions."""

from __future__ import annotations

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.transfer import row_writer
from atari_dqn.rng import restore_generator
from atari_dqn.types import StateDict


class WithoutPriorities(Sampler):
    """The part of a sampler whose indices are equally probable: no priorities, weights of 1."""

    def update_priorities(self, indices: Int64[Tensor, "B"], error: Float[Tensor, "B"]) -> None:
        """Do nothing."""

    def mutated_tensors(self) -> list[Tensor]:
        """Return an empty list: draws and updates change no tensor."""
        return []

    def priorities(self) -> Float64[Tensor, "n"]:
        """Return 1 for every index."""
        return torch.ones(self.count, dtype=torch.float64, device=self.device)

    def beta_at(self, env_frames: int) -> float:
        """Return 0: uniform sampling has no bias to correct."""
        del env_frames
        return 0.0


class UniformSampler(WithoutPriorities):
    """Samples indices uniformly **with replacement**, as Mnih et al. (2015).

    The list has only indices of transitions, so that one vectorised draw is exactly uniform without
    rejection.
    """

    def __init__(self, *, capacity: int, batch_size: int, seed: int, device: torch.device) -> None:
        super().__init__(batch_size=batch_size, seed=seed, device=device)
        self.indices = torch.zeros(capacity, dtype=torch.int64, device=device)
        self._writer = row_writer(self.indices)
        self.first = 0
        self._first_on_device, self._count_on_device = (
            torch.zeros((), dtype=torch.int64, device=device) for _ in range(2)
        )
        """Copies of `first` and `count` on the device, which `draw` reads."""

    def add(self, indices: Int64[Tensor, "n"], error: Float[Tensor, "n"] | None = None) -> None:
        """Append indices of transitions; uniform sampling has no priorities."""
        del error
        assert self.count + len(indices) <= len(self.indices), "the list has as many places as the ring"
        place = (self.first + self.count) % len(self.indices)
        before_seam = indices.numpy()[: len(self.indices) - place]
        after_seam = indices.numpy()[len(before_seam) :]
        self._writer.write(before_seam, place)
        self._writer.write(after_seam, 0)
        self.count += len(indices)

    def drop(self, indices: Int64[Tensor, "n"]) -> None:
        """Remove the indices that were added first."""
        assert len(indices) <= self.count
        self.first = (self.first + len(indices)) % len(self.indices)
        self.count -= len(indices)

    def indices_and_weights(
        self, unit: Float64[Tensor, "M B"]
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Find the indices that numbers in [0, 1) select from the list, with weights of 1."""
        places = (self._first_on_device + (unit * self._count_on_device).long()) % len(self.indices)
        return self.indices[places], torch.ones(places.shape, device=self.device)

    def valid_indices(self) -> Int64[Tensor, "n"]:
        """Return all indices that can be sampled, in the order of their steps."""
        places = (self.first + torch.arange(self.count)) % len(self.indices)
        return self.indices[places.to(self.indices.device)]

    def state_dict(self) -> StateDict:
        """Return the list of indices and the random stream."""
        return {
            "cells": self.indices,
            "first": self.first,
            "count": self.count,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the list and the random stream; `ValueError` for an invalid first place or length."""
        capacity = len(self.indices)
        if not (0 <= state["first"] < capacity and 0 <= state["count"] <= capacity):
            raise ValueError(f"replay.sampler: first or count is outside of a list of {capacity} indices")
        self.indices.copy_(torch.as_tensor(state["cells"]))
        self.first, self.count = state["first"], state["count"]
        restore_generator(self.generator, state["generator"])

    def _update_device_tensors(self, env_frames: int) -> None:
        del env_frames
        self._first_on_device.fill_(self.first)
        self._count_on_device.fill_(self.count)
