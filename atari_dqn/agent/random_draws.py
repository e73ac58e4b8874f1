"""Random numbers that networks draw: noise and quantile fractions, in the order of their use."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Draws(Protocol):
    """A source of random numbers other than a generator."""

    def normal(self, *shape: int) -> Tensor:
        """Draw numbers from N(0, 1)."""

    def uniform(self, *shape: int) -> Tensor:
        """Draw numbers from [0, 1)."""


Rng = torch.Generator | Draws
"""Where random numbers come from: a stream on the network's device, or numbers given in its place."""


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
