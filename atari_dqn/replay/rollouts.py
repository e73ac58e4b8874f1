"""Rollouts: the latest steps of every environment, learned from a few times and then replaced."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.replay import Replay
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.schedule import Horizon


class Rollouts(Replay[Minibatch]):
    """The latest T steps of E environments. Gallici et al. (2025), Algorithm 1.

    A rollout is complete after every T rows; the ring has exactly its rows and those of its stacks:

        row   | stacks of the first |  T rows: steps, or last frames of episodes  | newest frame |

    `sample` returns the rows in a random order without replacement, all of them before any again. The last
    frame of an episode is a row without a step; its weight is 0.
    """

    def __init__(self, ring: FrameRing, sampler: Sampler, *, steps: int, max_abs_reward: float) -> None:
        super().__init__(
            ring, sampler, rows_before=ring.stack - 1, rows_after=1, max_abs_reward=max_abs_reward
        )
        self.steps = steps
        self.returns = torch.zeros(ring.rows * ring.num_envs, device=ring.device)
        """The target of each step; `set_returns` sets those of a complete rollout."""
        self._order = self._remaining = torch.zeros(0, dtype=torch.int64, device=ring.device)

    def set_horizon(self, horizon: Horizon) -> None:
        """Do nothing: the returns are the targets."""

    @property
    def is_complete(self) -> bool:
        """Whether the latest rows are a whole rollout, since the latest `append`."""
        return self.ring.newest > 0 and self.ring.newest % self.steps == 0

    def indices(self) -> Int64[Tensor, "T1 E"]:
        """Compute the indices of the rollout's T rows, and of the newest frames."""
        newest, ring = self.ring.newest, self.ring
        rows = torch.arange(newest - self.steps, newest + 1, device=ring.device) % ring.rows
        return rows[:, None] * ring.num_envs + torch.arange(ring.num_envs, device=ring.device)

    def set_returns(self, returns: Float[Tensor, "T E"]) -> None:
        """Set the targets of a complete rollout, of which `sample` begins a new order."""
        self._order = self.indices()[:-1].flatten()
        self.returns[self._order] = returns.flatten()
        self._remaining = self._order[:0]

    def sample(self) -> Minibatch:
        """Take the next minibatch of the rollout in its random order."""
        self._sampled_at = self.ring.newest
        if not len(self._remaining):
            self._remaining = self._order[
                torch.randperm(len(self._order), generator=self.sampler.generator, device=self.ring.device)
            ]
        size = self.sampler.batch_size
        index, self._remaining = self._remaining[:size], self._remaining[size:]
        return self.minibatch(index, self.ring.is_step[index].float())

    def minibatch(self, index: Int64[Tensor, "B"], weight: Float[Tensor, "B"]) -> Minibatch:
        """Gather the states, actions and returns at these indices; no state follows."""
        stacks = self.ring.stacks(index)
        return Minibatch(
            s_tm1=stacks,
            a_tm1=self.ring.action[index].long(),
            r_t=self.returns[index],
            discount_t=torch.zeros_like(weight),
            s_t=stacks,
            weight=weight,
            index=index,
        )
