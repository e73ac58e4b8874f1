"""What an optimizer holds: its averages and counts."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.optim import Optimizer

from atari_dqn.types import StateDict


def averages_of(optimizer: Optimizer) -> Iterator[Tensor]:
    """Yield the averages and counts of an optimizer, which are 0 before its first step."""
    for state in optimizer.state.values():
        yield from (value for value in state.values() if isinstance(value, Tensor))


def load_optimizer(optimizer: Optimizer, state: StateDict) -> None:
    """Load an optimizer's state, keeping this device's `capturable` and the weights' memory format."""
    groups = [
        {**saved, "capturable": own["capturable"]} if "capturable" in own else saved
        for saved, own in zip(state["param_groups"], optimizer.param_groups, strict=True)
    ]
    optimizer.load_state_dict({**state, "param_groups": groups})
    for weight, averages in optimizer.state.items():
        for name, value in averages.items():
            if isinstance(value, Tensor) and value.shape == weight.shape:
                averages[name] = torch.empty_like(weight).copy_(value)  # fused Adam needs equal strides
