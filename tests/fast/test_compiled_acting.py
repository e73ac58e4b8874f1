"""Compiled selection of greedy actions, with the compiler replaced by the function itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from atari_dqn.agent.actor import Actor
from atari_dqn.fast import compile as compilation


class GradientModes(torch.nn.Module):
    """A network that records whether gradients and inference mode are on."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[tuple[bool, bool]] = []

    def q_values(self, stacks: Tensor, rng: Any, *, noise_rows: int) -> Tensor:
        self.modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        return torch.tensor([[0.0, 2.0, 1.0]]).expand(noise_rows, 3)


def uncompiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return function


@pytest.mark.fault("P04")
def test_compiled_acting_has_neither_gradients_nor_inference_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "Compiled", uncompiled)
    network = GradientModes()
    actor = Actor(
        network, envs=2, num_actions=3, stack=4, frame_shape=(1, 1),
        stream=np.random.default_rng(0), generator=torch.Generator(),
    )  # fmt: skip
    compilation.compile_acting(actor)
    assert actor.finish(actor.actions.numpy() if actor.begin(0.0) else None).tolist() == [1, 1]
    assert network.modes == [(False, False)]
