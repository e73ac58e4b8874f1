"""A training whose actors play in processes of their own: what their learner does with each message."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from atari_dqn.actors.build import envs_of_actor
from atari_dqn.actors.insertion import begins_incarnation, insert, steps_in, steps_of
from atari_dqn.actors.message import Fragment, decode
from atari_dqn.actors.orders import ActorDiedError, Order
from atari_dqn.actors.pool import ActorPool
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.agent.network import QNetwork
from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.telemetry.events import Row
from atari_dqn.train.actor_ends import ActorEnds
from atari_dqn.train.actor_meter import ActorMeter
from atari_dqn.train.learning import Learning
from atari_dqn.train.loop import Epsilon, Exploration, current_epsilon
from atari_dqn.types import StateDict, Stateful


@dataclass(frozen=True, slots=True)
class ActorIteration:
    """The result of one iteration: the fragment that was stored, if any, and the number of updates."""

    fragment: Fragment | None
    updates: int


@dataclass(kw_only=True)
class ActorTraining(Learning):
    """Stores the fragments of actors, learns, and publishes the weights with which they play.

    The replay has one writer, which is also its only reader: this object.
    """

    exploration: Exploration
    terminal_on_life_loss: bool
    envs: ActorPool
    replay: GroupedReplay[Any]
    weights: FlatWeights
    publish_period_updates: int
    max_lag_updates: int
    has_priorities: bool
    meter: ActorMeter

    def __post_init__(self) -> None:
        self._published: StateDict = {"version": -1, "weights": self.weights.read()}
        self._ends = ActorEnds(self.envs.num_actors)
        self._greediest_actions = np.zeros(self.envs.info.num_actions, dtype=np.int64)
        super().__post_init__()

    @property
    def greedy_counts(self) -> tuple[int, ...]:
        """Number of times that each action was selected in the last environment, which explores least."""
        return tuple(self._greediest_actions.tolist())

    @property
    def acting_network(self) -> QNetwork:
        """The online network, of which actors have copies."""
        return self.learner.online

    def begin(self) -> None:
        """Publish the initial weights."""
        self._publish()

    @abstractmethod
    def iterations(self) -> Iterator[ActorIteration]:
        """Train until the budget is reached; yield after each fragment."""

    def rows(self, iteration: ActorIteration) -> Iterator[Row]:
        """Yield the rows of the logs that a fragment completes."""
        if iteration.fragment is not None:
            yield from self._episode_rows(iteration.fragment)
        yield from self.reporter.period_rows(self._epsilon(), replay_transitions=self.replay.num_transitions)

    def notices(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the reports of actors that have ended."""
        yield from self._ends.notices(self.envs.records)

    def period_notices(self, seconds: float) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the report of the actors."""
        yield "actors", *self.meter.report(self.envs.records, seconds)

    def _episode_rows(self, fragment: Fragment) -> Iterator[Row]:
        envs = self._envs_of(fragment.actor)
        if begins_incarnation(fragment):
            self.reporter.forget_episodes(envs)
        steps, begin = steps_of(fragment), 0
        for row in np.flatnonzero(steps.ended.any(axis=1)).tolist():
            self.reporter.add_steps(steps[begin:row], first_env=envs.start)
            yield from self.reporter.episode_rows(steps[row], fragment.epsilon, first_env=envs.start)
            begin = row + 1
        self.reporter.add_steps(steps[begin:], first_env=envs.start)

    def compile(self) -> None:
        """Do nothing: neither actors nor their learner are compiled."""

    def order(self, actor: int) -> None:
        """Order an actor to play a fragment, with the ε of now and weights that are not too old."""
        envs = self._envs_of(actor)
        epsilon = np.broadcast_to(np.asarray(self._epsilon(), dtype=np.float64), self.envs.num_envs)
        own: Float64[np.ndarray, "L"] = epsilon[envs.start : envs.stop]
        with self.stopwatch.part("act"):
            self.envs.order(
                actor, Order(epsilon=own, least_version=max(0, self.learner.updates - self.max_lag_updates))
            )

    def receive(self, timeout_seconds: float) -> Fragment | None:
        """Receive the next message of any actor; None if there is none within a time."""
        with self.stopwatch.part("emulate"):
            message = self.envs.receive(timeout_seconds)
        if message is None:
            return None
        with self.stopwatch.part("store"):
            fragment = decode(message)
        self.envs.records[fragment.actor].received(time.monotonic(), steps_in(fragment))
        return fragment

    def store(self, fragment: Fragment) -> None:
        """Store a fragment in the replay, and count its steps."""
        with self.stopwatch.part("store"):
            insert(
                fragment,
                self.replay,
                terminal_on_life_loss=self.terminal_on_life_loss,
                has_priorities=self.has_priorities,
            )
        self.clock.advance(steps=steps_in(fragment), updates=0)
        self.meter.stored(fragment, self.learner.updates)
        if fragment.actor == self.envs.num_actors - 1:
            played = fragment.action[~fragment.first[:, -1], -1]
            self._greediest_actions += np.bincount(played, minlength=len(self._greediest_actions))

    def learn(self, updates: int) -> None:
        """Make some updates, and publish the weights if they are due."""
        self.update(updates)
        self.clock.advance(steps=0, updates=updates)
        if self.learner.updates - self._published["version"] >= self.publish_period_updates:
            self._publish()

    def _publish(self) -> None:
        with self.stopwatch.part("transfer"):
            self._published = {"version": self.learner.updates, "weights": self.weights.read()}
            self._send_published()

    def _send_published(self) -> None:
        self.envs.publish(self._published["version"], self._published["weights"])
        self.meter.published(self._published["version"])

    def _envs_of(self, actor: int) -> range:
        return envs_of_actor(actor, num_envs=self.envs.num_envs, num_actors=self.envs.num_actors)

    def _epsilon(self) -> Epsilon:
        return current_epsilon(self.exploration, self.clock)

    def _stateful(self) -> dict[str, Stateful]:
        return {
            "clock": self.clock,
            "replay": self.replay,
            "learner": self.learner,
            "reporter": self.reporter,
        }

    def state_dict(self) -> StateDict:
        """Return the learner's state, the published weights, and what is kept of the actors."""
        counts = self._greediest_actions.copy()
        actors = {"published": self._published, "greediest_actions": counts, **self._actors_state()}
        return {**super().state_dict(), "actors": actors}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state, instead of `begin`."""
        super().load_state_dict(state)
        actors = state["actors"]
        self._greediest_actions[:] = actors["greediest_actions"]
        published = actors["published"]
        self._published = {"version": published["version"], "weights": np.asarray(published["weights"])}
        self._send_published()
        self._load_actors_state(actors)

    @abstractmethod
    def _actors_state(self) -> StateDict:
        """Return the part of the state that belongs to the actors."""

    @abstractmethod
    def _load_actors_state(self, state: StateDict) -> None:
        """Restore the part of the state that belongs to the actors."""


@dataclass(kw_only=True)
class LockstepTraining(ActorTraining):
    """Actors play one after the other, while the learner waits. The state is complete: resumes are exact.

    actor 0   plays            |                  |                | plays
    actor 1                    |                  | plays          |
    learner         stores, learns, publishes     |        stores, learns, publishes
    """

    _turn: int = 0
    """The actor that plays next."""

    def iterations(self) -> Iterator[ActorIteration]:
        """Let each actor play a fragment in turn, and learn from it."""
        while self.clock.steps < self.total_steps:
            self.order(self._turn)
            fragment = self._wait()
            self.store(fragment)
            self._turn = (self._turn + 1) % self.envs.num_actors
            updates = self.clock.updates_due(
                period_steps=self.update_period_steps, updates_per_period=self.updates_per_period
            )
            self.learn(updates)
            yield ActorIteration(fragment, updates)

    def _wait(self) -> Fragment:
        """Wait for the message that was ordered; `ActorDiedError` if it does not come."""
        silence = self.envs.silence_limit()
        while (fragment := self.receive(silence.wait_seconds)) is None:
            if reason := silence.exceeded():
                raise ActorDiedError(f"actor {self._turn} {reason}")
        return fragment

    def _actors_state(self) -> StateDict:
        return {"turn": self._turn, "roles": self.envs.states()}

    def _load_actors_state(self, state: StateDict) -> None:
        self._turn = state["turn"]
        self.envs.load_states(state["roles"])
