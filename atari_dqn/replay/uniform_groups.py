"""Uniform sampling from the transitions of several groups of environments."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from atari_dqn.replay.transfer import row_writer, upload
from atari_dqn.replay.uniform import WithoutPriorities
from atari_dqn.rng import restore_generator
from atari_dqn.types import StateDict


class GroupedUniformSampler(WithoutPriorities):
    """Samples indices uniformly with replacement, from a first-in, first-out list for each group.

    There is no common list, because groups are written at different times: the oldest index of all is not
    always the next to be removed. A random number selects a place in the concatenated lists:

        group 0         group 1         group 2
        0 · · · 4       5 · · 7         8 · · · · 12         13 places
    """

    def __init__(
        self, *, capacity: int, groups: int, num_envs: int, batch_size: int, seed: int, device: torch.device
    ) -> None:
        super().__init__(batch_size=batch_size, seed=seed, device=device)
        assert num_envs % groups == 0
        assert capacity % groups == 0
        self._envs, self._groups, self._each = num_envs, groups, capacity // groups
        self.indices = torch.zeros(capacity, dtype=torch.int64, device=device)
        self._writer = row_writer(self.indices)
        self._first, self._counts = (np.zeros(groups, dtype=np.int64) for _ in range(2))
        self._first_on_device, self._counts_on_device = (
            torch.zeros(groups, dtype=torch.int64, device=device) for _ in range(2)
        )
        """Copies on the device, which `draw` reads."""

    def add(self, indices: Int64[Tensor, "n"], error: Float[Tensor, "n"] | None = None) -> None:
        """Append indices of one group to its list; uniform sampling has no priorities."""
        del error
        if not len(indices):
            return
        group = self._group_of(indices)
        assert self._counts[group] + len(indices) <= self._each, "a list has as many places as its group"
        place = int(self._first[group] + self._counts[group]) % self._each
        before_seam = indices.numpy()[: self._each - place]
        self._writer.write(before_seam, group * self._each + place)
        self._writer.write(indices.numpy()[len(before_seam) :], group * self._each)
        self._counts[group] += len(indices)
        self.count += len(indices)

    def drop(self, indices: Int64[Tensor, "n"]) -> None:
        """Remove the oldest indices of one group from its list."""
        if not len(indices):
            return
        group = self._group_of(indices)
        assert len(indices) <= self._counts[group]
        self._first[group] = (self._first[group] + len(indices)) % self._each
        self._counts[group] -= len(indices)
        self.count -= len(indices)

    def indices_and_weights(
        self, unit: Float64[Tensor, "M B"]
    ) -> tuple[Int64[Tensor, "M B"], Float[Tensor, "M B"]]:
        """Find the indices that random numbers in [0, 1) select, with weights of 1."""
        ends = self._counts_on_device.cumsum(dim=0)
        place = (unit * ends[-1]).long()
        group = torch.searchsorted(ends, place, right=True)
        within = place - (ends - self._counts_on_device)[group]
        chosen = group * self._each + (self._first_on_device[group] + within) % self._each
        return self.indices[chosen], torch.ones(chosen.shape, device=self.device)

    def valid_indices(self) -> Int64[Tensor, "n"]:
        """Return all indices that can be sampled, group after group, in the order of their steps."""
        places = [
            group * self._each + (first + np.arange(count)) % self._each
            for group, (first, count) in enumerate(zip(self._first, self._counts, strict=True))
        ]
        return self.indices[torch.from_numpy(np.concatenate(places)).to(self.indices.device)]

    def state_dict(self) -> StateDict:
        """Return the lists of indices and the random stream."""
        return {
            "cells": self.indices,
            "first": self._first.copy(),
            "counts": self._counts.copy(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the lists and the random stream; `ValueError` for an invalid first place or length."""
        first, counts = np.asarray(state["first"]), np.asarray(state["counts"])
        if not ((first >= 0) & (first < self._each) & (counts >= 0) & (counts <= self._each)).all():
            raise ValueError(f"replay.sampler: first or counts is outside of lists of {self._each} indices")
        self.indices.copy_(torch.as_tensor(state["cells"]))
        self._first[:], self._counts[:] = first, counts
        self.count = int(counts.sum())
        restore_generator(self.generator, state["generator"])

    def _group_of(self, indices: Int64[Tensor, "n"]) -> int:
        return int(indices[0]) % self._envs * self._groups // self._envs

    def _update_device_tensors(self, env_frames: int) -> None:
        del env_frames
        upload(self._first, self._first_on_device)
        upload(self._counts, self._counts_on_device)
