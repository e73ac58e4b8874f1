"""Parallelised Q-learning: rollouts of all environments, and passes over each. Gallici et al. (2025)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from atari_dqn.agent.lambda_returns import lambda_returns
from atari_dqn.replay.rollouts import Rollouts
from atari_dqn.train.loop import Iteration, current_epsilon
from atari_dqn.train.training import Training


@dataclass(kw_only=True)
class RolloutTraining(Training):
    """Implements the steps of Algorithm 1 of Gallici et al. (2025), with the parts of `Training`."""

    replay: Rollouts
    gamma: float
    trace_decay: float
    updates_per_rollout: int

    def iterations(self) -> Iterator[Iteration]:
        """Act and store; after every rollout, learn from it. Yield after each step of the environments."""
        clock = self.clock
        while clock.steps < self.total_steps:
            epsilon = current_epsilon(self.exploration, clock)
            actions = self.act(epsilon)
            self.send(actions)
            step = self.recv()
            self.store(actions, step)
            updates = self.learn() if self.replay.is_complete else 0
            clock.advance(steps=step.num_steps, updates=updates)
            yield Iteration(epsilon, step, updates)

    def learn(self) -> int:
        """Compute the λ-returns of a complete rollout, and take all gradient steps on it."""
        with self.stopwatch.part("learn"):
            ring, rows = self.replay.ring, self.replay.indices()[:-1]
            returns = lambda_returns(
                ring.reward[rows],
                self.gamma * ring.discount[rows],
                ring.is_step[rows],
                self._max_q(),
                self.trace_decay,
            )
            self.replay.set_returns(returns)
        self.update(self.updates_per_rollout)
        return self.updates_per_rollout

    def _refuse_other_updates(self) -> None:
        """Raise `ValueError` unless the updates are those of the complete rollouts."""
        found = self.clock.updates_since_refill
        expected = self.replay.ring.newest // self.replay.steps * self.updates_per_rollout
        if found != expected:
            raise ValueError(f"clock.updates: found {found}, expected {expected} of the complete rollouts")

    @torch.no_grad()
    def _max_q(self) -> Float[Tensor, "T1 E"]:
        """Compute the largest q-value of each frame of a rollout, by minibatches."""
        indices, replay = self.replay.indices(), self.replay
        parts = torch.split(indices.flatten(), replay.sampler.batch_size)
        online = self.learner.online
        found = [online.q_values(replay.ring.stacks(part).to(self.device)).amax(dim=1) for part in parts]
        return torch.cat(found).view(indices.shape).to(indices.device)
