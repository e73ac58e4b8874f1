"""Random numbers for noise and quantile fractions, from a generator or another source."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Draws(Protocol):
    """A source of random numbers that replaces a generator."""

    def normal(self, *shape: int) -> Tensor:
        """Draw numbers from N(0, 1)."""

    def uniform(self, *shape: int) -> Tensor:
        """Draw numbers from [0, 1)."""


Rng = torch.Generator | Draws
"""A generator on the network's device, or a source in its place."""


def normal(rng: Rng, *shape: int) -> Tensor:
    """Draw numbers from N(0, 1)."""
    if isinstance(rng, torch.Generator):
        return torch.randn(*shape, generator=rng, device=rng.device)
    return rng.normal(*shape)


def uniform(rng: Rng, *shape: int) -> Tensor:
    """Draw numbers from [0, 1)."""
    if isinstance(rng, torch.Generator):
        return torch.rand(*shape, generator=rng, device=rng.device)
    return rng.uniform(*shape)
