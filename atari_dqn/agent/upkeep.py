"""Work on the networks between two updates, and the target network's moving average."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn


class Upkeep(Protocol):
    """Work that is due after some of the updates. It has no state: the number of updates determines it."""

    def updates_until(self, updates: int, /) -> int:
        """Return the number of updates from `updates` up to and including the next one that work follows."""
        ...

    def after(self, updates: int, /) -> None:
        """Do the work that is due after `updates` updates; most often there is none."""
        ...


@torch.no_grad()
def move_towards(target: nn.Module, online: nn.Module, rate: float) -> None:
    """Move every parameter of the target network: θ⁻ ← θ⁻ + τ (θ − θ⁻). Lillicrap et al. (2016)."""
    torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), rate)
