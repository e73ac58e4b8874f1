"""The replay buffer of single steps, which returns minibatches of n-step transitions."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.replay import Replay
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.schedule import Horizon


def ring_rows(*, capacity_steps: int, envs: int, stack: int, n_step: int) -> int:
    """Compute the rows of a ring from which `capacity_steps` transitions can be sampled.

    No transition starts at the oldest S − 1 rows, whose stack is incomplete, or at the newest n, whose n-step
    window is incomplete.
    """
    return -(-capacity_steps // envs) + stack - 1 + n_step


class ReplayBuffer(Replay[Minibatch]):
    """A replay of transitions: one begins at each step with a complete stack and a complete n-step window."""

    def __init__(
        self, ring: FrameRing, sampler: Sampler, *, n_step: int, gamma: float, max_abs_reward: float
    ) -> None:
        super().__init__(
            ring, sampler, rows_before=ring.stack - 1, rows_after=n_step, max_abs_reward=max_abs_reward
        )
        self.set_horizon(Horizon(n_step=n_step, gamma=gamma))

    def set_horizon(self, horizon: Horizon) -> None:
        """Set n and γ of the next minibatches; n is at most that of the constructor."""
        assert horizon.n_step <= self._rows_after
        ring, n_step = self.ring, horizon.n_step
        self.n_step, self.gamma = n_step, horizon.gamma
        self._window = partial(ring.window, n_step=n_step) if n_step > 1 else ring.one_step_window

    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> Minibatch:
        """Gather the n-step transitions that begin at these indices."""
        window = self._window(index, gamma=self.gamma)
        later = self.ring.ahead(index, window.span_steps)
        s_tm1, s_t = self.ring.stacks(torch.cat([index, later])).chunk(2)
        return Minibatch(
            s_tm1=s_tm1,
            a_tm1=self.ring.action[index].long(),
            r_t=window.r_t,
            discount_t=window.discount_t,
            s_t=s_t,
            weight=weight,
            index=index,
        )
