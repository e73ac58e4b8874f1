"""The parts of Algorithm 1 as one object with one state: environments, replay, actor and learner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.acceleration import Eager, Work
from atari_dqn.replay.replay import Replay, first_step
from atari_dqn.replay.transfer import host_copy
from atari_dqn.telemetry.events import Row
from atari_dqn.train.learning import Learning, has_replay
from atari_dqn.train.loop import Epsilon, Exploration, Iteration, q_learning
from atari_dqn.types import Environments, StateDict, Stateful, StepBatch


@dataclass(kw_only=True)
class Training(Learning):
    """Implements the steps of Algorithm 1 (`train.loop.Parts`) in one process."""

    exploration: Exploration
    terminal_on_life_loss: bool
    envs: Environments
    replay: Replay[Any]
    actor: Actor

    def __post_init__(self) -> None:
        self._greedy = host_copy(self.actor.actions)
        super().__post_init__()

    @property
    def greedy_counts(self) -> tuple[int, ...]:
        """Number of times that each action was greedy."""
        return tuple(self.actor.greedy_counts.tolist())

    @property
    def acting_network(self) -> QNetwork:
        """The network of the actor."""
        return self.actor.network

    def iterations(self) -> Iterator[Iteration]:
        """Train by Algorithm 1."""
        return q_learning(self)

    def rows(self, iteration: Iteration) -> Iterator[Row]:
        """Yield the rows of the logs that an iteration completes."""
        return self.reporter.rows(iteration, replay_transitions=self.replay.num_transitions)

    def begin(self) -> None:
        """Reset the environments for a new run; a resumed run restores them instead."""
        step = self.envs.reset()
        self.replay.begin(step)
        self.actor.observe(step)

    def act(self, epsilon: Epsilon) -> Int64[np.ndarray, "E"]:
        """Select one ε-greedy action per environment. No other part of an iteration waits for the GPU.

        The host waits first for the previous updates, then for the actions, so that both times are logged.
        """
        with self.stopwatch.part("act"):
            has_greedy = self.actor.begin(epsilon)
            if has_greedy:
                self._greedy.fetch()
        with self.stopwatch.part("learn"):
            if has_greedy:
                self.metrics.wait()
        with self.stopwatch.part("act"):
            return self.actor.finish(self._greedy.wait() if has_greedy else None)

    def send(self, actions: Int64[np.ndarray, "E"]) -> None:
        """Start a step of every environment."""
        with self.stopwatch.part("emulate"):
            self.envs.send(actions)

    def recv(self) -> StepBatch:
        """Wait for the step and return it."""
        with self.stopwatch.part("emulate"):
            return self.envs.recv()

    def store(self, actions: Int64[np.ndarray, "E"], step: StepBatch) -> None:
        """Store actions and results in the replay, and the new frames in the actor's stacks."""
        with self.stopwatch.part("store"):
            discount = step.discount(terminal_on_life_loss=self.terminal_on_life_loss)
            self.replay.append(actions, discount, step, self.actor.memory)
            self.actor.observe(step)

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state, instead of `begin`."""
        super().load_state_dict(state)
        self._acting.forget()
        if has_replay(state):
            self.actor.stacks.copy_(self.replay.newest_stacks())
        else:
            self.actor.observe(first_step(state["replay"]["newest_frame"]))
        self._refuse_other_steps(state)
        self._refuse_other_updates()

    def use_graphs(self, captured: bool) -> None:
        """Select whether acting and updates are replayed from CUDA graphs or run eagerly."""
        super().use_graphs(captured)
        self._acting: Work = self._graph_of_acting() if captured else Eager(self.actor.compute_greedy)
        self.actor.select = self._acting.run if captured else self.actor.compute_greedy

    def compile(self) -> None:
        """Compile acting and learning on a minibatch of zeros; weights and random streams do not change."""
        self.backend.compile(self.actor, self.learner, self.example())
        self.use_graphs(self.captured)

    def _refuse_other_steps(self, state: StateDict) -> None:
        """Raise `ValueError` if the clock has more steps than the replay has had."""
        clock, ring = self.clock, self.replay.ring
        if has_replay(state) and clock.steps > ring.newest * ring.num_envs:
            raise ValueError(f"clock.steps: found {clock.steps}, more than the replay has had")

    def _refuse_other_updates(self) -> None:
        """Raise `ValueError` if more updates are due than an iteration makes."""
        owed = self.clock.updates_due(
            period_steps=self.update_period_steps, updates_per_period=self.updates_per_period
        )
        if owed > (1 + self.envs.num_envs // self.update_period_steps) * self.updates_per_period:
            raise ValueError(f"clock.updates: {owed} updates would be owed, more than an iteration's")

    def _stateful(self) -> dict[str, Stateful]:
        # the keys are the format of checkpoints: two of them are older than the names of their parts
        return {
            "clock": self.clock,
            "lanes": self.envs,
            "replay": self.replay,
            "policy": self.actor,
            "learner": self.learner,
            "reporter": self.reporter,
        }

    def _graph_of_acting(self) -> Work:
        actor = self.actor
        return self.backend.captured(
            actor.compute_greedy, generators=[actor.generator], mutated=lambda: [actor.actions]
        )
