"""Select an actor's actions, and keep the q-values with which they were selected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.recurrent_actor import RecurrentActor

QValues = Callable[[], Tensor]


@dataclass(frozen=True, slots=True)
class Selected:
    """Actions on the newest frames; without first priorities the q-values are 0."""

    action: Int64[np.ndarray, "L"]
    q_selected: Float32[np.ndarray, "L"]
    q_max: Float32[np.ndarray, "L"]
    version: int
    """Version of the weights that selected the actions."""


class ActionsOnly:
    """Selects actions for a replay without priorities. No q-values are computed where all explore."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def select(self, epsilon: Float64[np.ndarray, "L"], version: int) -> Selected:
        """Select ε-greedy actions on the newest frames."""
        actor = self._actor
        has_greedy = actor.begin(epsilon)
        action = actor.finish(actor.actions.numpy() if has_greedy else None)
        none = np.zeros(actor.envs, dtype=np.float32)
        return Selected(action.copy(), none, none, version)


class WithQValues:
    """Selects actions, and keeps the q-values of every step, from which first priorities are computed."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._q_values = _recurrent(actor) if isinstance(actor, RecurrentActor) else _of_stacks(actor)
        self._q = torch.zeros((actor.envs, actor.num_actions))
        actor.select = self._compute

    def select(self, epsilon: Float64[np.ndarray, "L"], version: int) -> Selected:
        """Select ε-greedy actions on the newest frames, with one forward pass."""
        actor = self._actor
        has_greedy = actor.begin(epsilon)
        if not has_greedy:
            self._compute()
        action = actor.finish(actor.actions.numpy() if has_greedy else None).copy()
        q = self._q.numpy()
        return Selected(action, q[np.arange(len(action)), action], q.max(axis=1), version)

    def _compute(self) -> None:
        self._q = self._q_values()
        self._actor.actions.copy_(self._q.argmax(dim=1))


def _of_stacks(actor: Actor) -> QValues:
    def q_values() -> Tensor:
        with torch.inference_mode():
            return actor.network.q_values(actor.stacks, actor.generator, noise_rows=len(actor.stacks))

    return q_values


def _recurrent(actor: RecurrentActor) -> QValues:
    return lambda: actor.past.q_values(actor.stacks)
