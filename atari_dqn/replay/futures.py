"""The replay of transitions with the steps that follow them, for agents that predict their own future."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.minibatch import FutureBatch
from atari_dqn.replay.buffer import ReplayBuffer
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.schedule import Horizon


class FutureReplay(ReplayBuffer):
    """A replay whose samples have the actions of `steps` = K time steps and the stacks after them.

    A sample begins at any step of an episode, as a transition does. The steps after the end of the episode
    are masked, and so is a terminal step, which no state follows. Here K = 3, and the episode's last action
    led to the frame F:

        frames      C   D   E   F | G      terminated          truncated
        sample of C                          1   2   ·           1   2   3
        sample of D                          1   ·   ·           1   2   ·
        sample of E                          ·   ·   ·           1   ·   ·
    """

    def __init__(self, ring: FrameRing, sampler: Sampler, *, steps: int, n_step: int, **values: Any) -> None:
        super().__init__(ring, sampler, n_step=max(steps, n_step), **values)
        self.set_horizon(Horizon(n_step=n_step, gamma=self.gamma))
        self._steps = torch.arange(steps + 1, device=ring.device)

    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> FutureBatch:
        """Gather the transitions that begin at these indices, and what follows them."""
        ring, transitions = self.ring, super().minibatch(index, weight)
        rows = ring.ahead(index[:, None], self._steps)
        acting, later = rows[:, :-1], rows[:, 1:]  # the rows of the K actions, and those of the frames after
        goes_on = ring.is_step[acting] & (ring.discount[acting] != 0)
        return FutureBatch(
            **{field.name: getattr(transitions, field.name) for field in fields(transitions)},
            actions=ring.action[acting].long(),
            future=ring.stacks(later.flatten()).view(*later.shape, *transitions.s_t.shape[1:]),
            follows=goes_on.cumprod(dim=1).bool(),
        )
