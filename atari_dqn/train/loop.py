"""Deep Q-learning with experience replay: Algorithm 1 of Mnih et al. (2015), for E environments at once.

The updates of a tick run while the emulators do, on what is stored already; with one environment that is the
paper's loop with its newest transition one step later in the pool (docs/deviations.md, D12).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Int64

from atari_dqn.clock import Clock
from atari_dqn.schedule import LinearSchedule
from atari_dqn.types import StepBatch


class Parts(Protocol):
    """What Algorithm 1 is made of. Each is one verb; `assembly` puts them together."""

    clock: Clock
    exploration: LinearSchedule
    total_steps: int
    update_period_steps: int

    def choose(self, epsilon: float, /) -> Int64[np.ndarray, "E"]:
        """Return one ε-greedy action per environment."""
        ...

    def send(self, actions: Int64[np.ndarray, "E"], /) -> None:
        """Begin one step on every environment."""
        ...

    def recv(self) -> StepBatch:
        """Wait for that step."""
        ...

    def store(self, actions: Int64[np.ndarray, "E"], step: StepBatch, /) -> None:
        """Put what was done, and what it led to, into the replay."""
        ...

    def update(self, count: int, /) -> None:
        """Take so many gradient steps, each on a minibatch of the replay."""
        ...


@dataclass(frozen=True, slots=True)
class Tick:
    """One pass of the loop: what every environment showed, and how many updates were made."""

    epsilon: float
    step: StepBatch
    updates: int


def q_learning(parts: Parts) -> Iterator[Tick]:
    """Play, store and learn until the budget of agent steps is spent, one tick at a time."""
    clock = parts.clock
    while clock.steps < parts.total_steps:
        epsilon = parts.exploration.at(clock.learning_frames) if clock.learning else 1.0
        actions = parts.choose(epsilon)
        parts.send(actions)
        updates = clock.updates_due(period_steps=parts.update_period_steps)
        parts.update(updates)
        step = parts.recv()
        parts.store(actions, step)
        clock.advance(steps=int(np.count_nonzero(~step.first)), updates=updates)
        yield Tick(epsilon, step, updates)
