"""The role of an actor: it plays fragments with a copy of the network, and computes first priorities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64

from atari_dqn.actors.acting import Selected
from atari_dqn.actors.first_priorities import FirstPriorities
from atari_dqn.actors.message import Fragment
from atari_dqn.actors.orders import Order
from atari_dqn.actors.rows import FragmentRows
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.agent.actor import Actor
from atari_dqn.types import Environments, StateDict


class Published(Protocol):
    """The published weights, as an actor reads them."""

    def fetch(self, least_version: int) -> tuple[int, np.ndarray]:
        """Return the newest version and its weights; wait until there is one of at least this version."""
        ...


class ActionSelector(Protocol):
    """Selects actions: `acting.ActionsOnly` or `acting.WithQValues`."""

    def select(self, epsilon: Float64[np.ndarray, "L"], version: int) -> Selected:
        """Select ε-greedy actions on the newest frames."""
        ...


StateRows = Callable[[Int64[np.ndarray, "L"]], Bool[np.ndarray, "L"]]
"""Computes from the numbers of steps in their episodes whether a burn-in begins: then states are sent."""


def no_states(number: Int64[np.ndarray, "L"]) -> Bool[np.ndarray, "L"]:
    """Return that no state is sent, where there is no memory or sequences begin from zero."""
    return np.zeros(len(number), dtype=np.bool_)


def not_counted(steps: int) -> None:
    """Count no steps: nothing can be lost of an actor that ends with its learner."""


class ActorRole:
    """Plays environments in fragments of T steps, each of L environments.

    The next actions are selected before a fragment ends, because the q-values of the newest frame complete
    the first priorities of the fragment's last samples:

        weights      fetched                             fetched
        actions      a₁  a₂  …  a_T  a_T+1 |             a_T+2  …
        fragment     frames 1 … T, priorities up to T    |  frame T+1, the result of a_T+1, …
    """

    def __init__(
        self,
        *,
        number: int,
        incarnation: int,
        envs: Environments,
        actor: Actor,
        selector: ActionSelector,
        priorities: FirstPriorities | None,
        state_rows: StateRows,
        weights: FlatWeights,
        published: Published,
        fragment_steps: int,
        sync_period_steps: int,
        max_abs_reward: float,
        terminal_on_life_loss: bool,
        count_steps: Callable[[int], None],
    ) -> None:
        self.number, self.incarnation = number, incarnation
        self.envs, self._actor, self._selector = envs, actor, selector
        self._priorities, self._state_rows = priorities, state_rows
        self._weights, self._published = weights, published
        self._fragment_steps, self._sync_period_steps = fragment_steps, sync_period_steps
        self._max_abs_reward, self._terminal_on_life_loss = max_abs_reward, terminal_on_life_loss
        self._count_steps = count_steps
        self._version, self._steps_since_sync = -1, 0
        self._messages = 0
        """Number of messages of this incarnation."""
        self._step_of_episode = np.zeros(actor.envs, dtype=np.int64)
        self._next: Selected | None = None
        """The actions that were selected on the newest frames; None before the first frames."""
        self._epsilon = np.zeros(actor.envs)
        self._before_next = actor.state_dict()
        """ε and the actor's state with which they were selected."""

    def play(self, order: Order) -> Fragment:
        """Play a fragment. The first one of an incarnation begins with the reset of the environments."""
        self._sync(order.least_version)
        rows = FragmentRows()
        if not self._messages:
            self._begin(rows, order)
        for _ in range(self._fragment_steps):
            self._step(rows, self._selected)
            self._select_next(order.epsilon)
        fragment = rows.fragment(
            actor=self.number,
            incarnation=self.incarnation,
            sequence=self._messages,
            epsilon=order.epsilon,
            priority=self._first_priorities(rows),
        )
        self._messages += 1
        self._steps_since_sync += self._fragment_steps
        return fragment

    def _sync(self, least_version: int) -> None:
        """Fetch weights if a period has passed, or if those at hand are too old."""
        if self._steps_since_sync < self._sync_period_steps and self._version >= least_version:
            return
        version, flat = self._published.fetch(least_version)
        if version != self._version:
            self._weights.write(flat)
        self._version, self._steps_since_sync = version, 0

    def _begin(self, rows: FragmentRows, order: Order) -> None:
        """Reset the environments, and select the first actions."""
        step = self.envs.reset()
        rows.add_reset(step, version=self._version)
        self._actor.observe(step)
        self._select_next(order.epsilon)

    def _step(self, rows: FragmentRows, selected: Selected) -> None:
        """Play the selected actions."""
        number = self._step_of_episode
        self.envs.send(selected.action)
        step = self.envs.recv()
        self._count_steps(step.num_steps)
        sends_state = bool((self._state_rows(number) & ~step.first).any())
        rows.add(
            selected,
            step,
            number=number,
            reward=np.clip(step.reward, -self._max_abs_reward, self._max_abs_reward),
            discount=step.discount(terminal_on_life_loss=self._terminal_on_life_loss),
            state=self._memory() if sends_state else None,
        )
        self._step_of_episode = np.where(step.first, 0, number + 1)
        self._actor.observe(step)

    def _select_next(self, epsilon: Float64[np.ndarray, "L"]) -> None:
        self._epsilon, self._before_next = epsilon, self._actor.state_dict()
        self._next = self._selector.select(epsilon, self._version)

    @property
    def _selected(self) -> Selected:
        assert self._next is not None, "a fragment begins with first frames, or where the last one ended"
        return self._next

    def _memory(self) -> np.ndarray:
        assert self._actor.memory is not None
        state: np.ndarray = self._actor.memory.numpy().copy()
        return state

    def _first_priorities(self, rows: FragmentRows) -> np.ndarray | None:
        if self._priorities is None:
            return None
        return self._priorities.complete(rows.played(), self._selected.q_max)

    def state_dict(self) -> StateDict:
        """Return everything that determines how the actor continues; its weights as well.

        The next actions are left out: a restored actor selects them again.
        """
        state: dict[str, Any] = {
            "envs": self.envs.state_dict(),
            "actor": self._before_next,
            "epsilon": self._epsilon.copy(),
            "stacks": self._actor.stacks.clone(),
            "step_of_episode": self._step_of_episode.copy(),
            "weights": self._weights.read(),
            "version": self._version,
            "steps_since_sync": self._steps_since_sync,
            "messages": self._messages,
            "incarnation": self.incarnation,
        }
        return state if self._priorities is None else {**state, "windows": self._priorities.state_dict()}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state."""
        self.envs.load_state_dict(state["envs"])
        self._actor.load_state_dict(state["actor"])
        self._actor.stacks.copy_(torch.as_tensor(state["stacks"]))
        self._step_of_episode = np.asarray(state["step_of_episode"])
        self._weights.write(np.asarray(state["weights"]))
        self._version, self._steps_since_sync = state["version"], state["steps_since_sync"]
        self._messages, self.incarnation = state["messages"], state["incarnation"]
        if self._priorities is not None:
            self._priorities.load_state_dict(state["windows"])
        if self._messages:
            self._select_next(np.asarray(state["epsilon"]))

    def close(self) -> None:
        """Free the environments."""
        self.envs.close()
