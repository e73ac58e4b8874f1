"""Deep Q-learning with experience replay: Algorithm 1 of Mnih et al. (2015), for E environments at once.

The updates of an iteration run while the emulators do, on the transitions stored before. With one
environment this is the loop of the paper, except that a transition can be sampled one step later
(docs/deviations.md, D12).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float64, Int64

from atari_dqn.clock import Clock
from atari_dqn.types import StepBatch

Epsilon = float | Float64[np.ndarray, "E"]
"""ε of all environments, or of each of them."""


class Exploration(Protocol):
    """ε as a function of the emulator frames since learning began (`schedule`)."""

    def at(self, frames: int, /) -> Epsilon:
        """Compute ε after `frames` emulator frames."""
        ...


def current_epsilon(exploration: Exploration, clock: Clock) -> Epsilon:
    """Compute ε of the next actions, which are random until learning begins."""
    return exploration.at(clock.learning_frames) if clock.learning else 1.0


class Parts(Protocol):
    """The steps of Algorithm 1, which `train.training.Training` implements."""

    clock: Clock
    exploration: Exploration
    total_steps: int
    update_period_steps: int
    updates_per_period: int

    def act(self, epsilon: Epsilon, /) -> Int64[np.ndarray, "E"]:
        """Select one ε-greedy action per environment."""
        ...

    def send(self, actions: Int64[np.ndarray, "E"], /) -> None:
        """Start a step of every environment."""
        ...

    def recv(self) -> StepBatch:
        """Wait for the step and return it."""
        ...

    def store(self, actions: Int64[np.ndarray, "E"], step: StepBatch, /) -> None:
        """Store actions and results in the replay."""
        ...

    def update(self, count: int, /) -> None:
        """Take `count` gradient steps, each on a minibatch of the replay."""
        ...


@dataclass(frozen=True, slots=True)
class Iteration:
    """The result of one iteration: ε, the step of every environment and the number of updates."""

    epsilon: Epsilon
    step: StepBatch
    updates: int


def q_learning(parts: Parts) -> Iterator[Iteration]:
    """Act, learn and store until the budget of agent steps is reached; yield after each iteration."""
    clock = parts.clock
    while clock.steps < parts.total_steps:
        # "With probability ε select a random action a_t, otherwise select a_t = argmax_a Q(φ(s_t), a; θ)"
        epsilon = current_epsilon(parts.exploration, clock)
        actions = parts.act(epsilon)
        # "Execute action a_t in emulator and observe reward r_t and image x_{t+1}"
        parts.send(actions)
        # "Sample random minibatch of transitions … from D", learn from it, "Every C steps reset Q̂ = Q"
        updates = clock.updates_due(
            period_steps=parts.update_period_steps, updates_per_period=parts.updates_per_period
        )
        parts.update(updates)
        step = parts.recv()
        # "Store transition (φ_t, a_t, r_t, φ_{t+1}) in D"
        parts.store(actions, step)
        clock.advance(steps=step.num_steps, updates=updates)
        yield Iteration(epsilon, step, updates)
