"""Work between two updates, on the networks and on the optimizer's averages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class Upkeep(Protocol):
    """Work that is due after some of the updates. It has no state: the number of updates determines it."""

    def updates_until(self, updates: int, /) -> int:
        """Compute how many updates, after `updates` of them, are made before the next work; at least 1."""
        ...

    def after(self, updates: int, /) -> None:
        """Do the work that is due after `updates` updates; most often there is none."""
        ...


@torch.no_grad()
def move_towards(target: nn.Module, online: nn.Module, rate: float) -> None:
    """Move every parameter of the target network: θ⁻ ← θ⁻ + τ (θ − θ⁻). Lillicrap et al. (2016)."""
    torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), rate)


def averages_of(optimizer: Optimizer) -> Iterator[Tensor]:
    """Yield the averages and counts of an optimizer, which are 0 before its first step."""
    for state in optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, Tensor))
