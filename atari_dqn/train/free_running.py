"""Free-running training: actors and learner work at the same time, at a ratio that a limiter holds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from atari_dqn.actors.insertion import steps_in
from atari_dqn.actors.limiter import Limiter
from atari_dqn.actors.message import Fragment
from atari_dqn.train.actor_training import ActorIteration, ActorTraining
from atari_dqn.train.learning import has_replay
from atari_dqn.types import StateDict

_IDLE_SECONDS = 0.1
"""Longest wait for a message while no update is allowed."""
FIRST_REPORT_SECONDS = 60.0
"""Time without any message that the learner needs, after which it reports that; then after twice as long."""


@dataclass(kw_only=True)
class FreeRunningTraining(ActorTraining):
    """Stores messages as they arrive and learns in between, as far as the limiter allows either.

    Each actor has a fixed number of open orders, so that actors which are ahead wait, and memory is bounded.
    A resume restores the learner: its actors begin anew with its weights.
    """

    limiter: Limiter
    messages_in_flight: int
    _held: Fragment | None = field(default=None, init=False)
    """A message that waits until it may be stored."""
    _waited_seconds: float = field(default=0.0, init=False)
    """Time for which the learner has needed a message, since the last one."""
    _report_after_seconds: float = field(default=FIRST_REPORT_SECONDS, init=False)

    def iterations(self) -> Iterator[ActorIteration]:
        """Store a message, make an update, or wait, whichever the limiter allows."""
        while self.clock.steps < self.total_steps:
            for actor in self.envs.started():
                for _ in range(self.messages_in_flight):
                    self.order(actor)
            yield self._next()

    def _next(self) -> ActorIteration:
        batch_size = self.replay.sampler.batch_size
        may_learn = self.replay.num_transitions > 0 and self.limiter.can_sample(batch_size)
        began = time.perf_counter()
        if self._held is None:
            self._held = self.receive(0.0 if may_learn else _IDLE_SECONDS)
        if not may_learn:
            waited = time.perf_counter() - began
            self.meter.waited("learner", waited)
            self._waited_seconds += waited
        if self._held is not None:
            self._waited_seconds, self._report_after_seconds = 0.0, FIRST_REPORT_SECONDS
        if self._held is not None and self.limiter.can_insert(steps_in(self._held)):
            return self._store_held(self._held)
        if not may_learn:
            return ActorIteration(None, 0)
        self.limiter.sample(batch_size)
        self.learn(1)
        if self._held is not None:
            self.meter.waited("actors", time.perf_counter() - began)
        return ActorIteration(None, 1)

    def notices(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the reports of actors that have ended, and of a learner that waits for all of them."""
        yield from super().notices()
        if self._waited_seconds >= self._report_after_seconds:
            self._report_after_seconds *= 2
            now = time.monotonic()
            states = Counter(record.state(now) for record in self.envs.records)
            found = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
            message = f"the learner has waited for {self._waited_seconds:.0f} seconds for any actor: {found}"
            yield "no message", message, dict(states)

    def _store_held(self, fragment: Fragment) -> ActorIteration:
        self._held = None
        self.store(fragment)
        self.limiter.insert(steps_in(fragment))
        self.order(fragment.actor)
        return ActorIteration(fragment, 0)

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a state, instead of `begin`; without rows of the replay, its minimum size holds again."""
        super().load_state_dict(state)
        if has_replay(state):
            self.limiter.load_state_dict(state["actors"]["limiter"])
        else:
            self.limiter.refill()

    def _actors_state(self) -> StateDict:
        incarnations = np.array([record.incarnation for record in self.envs.records])
        return {"incarnations": incarnations, "limiter": self.limiter.state_dict()}

    def _load_actors_state(self, state: StateDict) -> None:
        """Let every actor begin an incarnation that the run has not had."""
        for record, incarnation in zip(self.envs.records, state["incarnations"], strict=True):
            record.incarnation = int(incarnation) + 1
