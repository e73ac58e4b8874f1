"""Actors in other processes, by orders and answers: the same for every carrier of them."""

from __future__ import annotations

import atexit
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Generic

import numpy as np
from jaxtyping import Float32

from atari_dqn.actors.carrier import Carrier, H
from atari_dqn.actors.orders import ActorDiedError, Letter, Order, encode_order
from atari_dqn.actors.records import Record
from atari_dqn.actors.state_codec import decode_state, encode_state
from atari_dqn.envs.processes import within_limits
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StateDict

_SILENT_WAITS = 120
"""Consecutive waits without an answer after which an actor is considered lost. A fragment takes seconds."""
_SILENT_WAITS_AT_END = 30
"""The same after the run was asked to end: longer than a fragment, or the start of an actor, so that none of
either is given up, and with it the work since the last checkpoint."""
_WAIT_SECONDS = 1.0
"""Duration of a wait."""


class CarriedActors(Generic[H]):
    """Implements `ActorPool`. All actors are started at once, and none is started again.

    If one ends, the call that waits for it raises `ActorDiedError`; after that, only `close` may be called.
    """

    def __init__(
        self, spec: Spec, info: GameInfo, carrier: Carrier[H], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.info, self.carrier, self._now = info, carrier, now
        self.num_envs = spec.env.num_envs
        self.num_actors = self.num_processes = given(spec.actors.processes)
        self.records = [Record() for _ in range(self.num_actors)]
        self.actors: dict[int, H] = {}
        """The actors that are alive, by number."""
        self._ready: deque[int] = deque()
        self._stop: Callable[[], bool] = lambda: False
        self.busy_seconds = math.nan  # actors measure no time of their emulators
        atexit.register(self.close)  # at exit the interpreter joins its children, which wait for orders
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Publish weights."""
        self.carrier.publish(version, flat)

    def started(self) -> list[int]:
        """Return no actors: all were started at once, and none is started again."""
        return []

    def order(self, actor: int, order: Order) -> None:
        """Order an actor to play a fragment."""
        self.actors[actor].send(encode_order(order), self.silence_limit())

    def receive(self, timeout_seconds: float) -> bytes | None:
        """Return the next message of any actor; None if there is none within a time."""
        if not self._ready:
            self._ready.extend(self.carrier.ready(self.actors, timeout_seconds))
        return self.actors[self._ready.popleft()].answer(self.silence_limit()) if self._ready else None

    def silence_limit(self) -> SilenceLimit:
        """Return a limit on consecutive waits for an answer."""
        return SilenceLimit(
            self._stop,
            most_waits=_SILENT_WAITS + self.num_actors,  # they start together, on cores that they share
            waits_at_end=_SILENT_WAITS_AT_END,
            wait_seconds=_WAIT_SECONDS,
            resume=self._resume_actors,
        )

    def states(self) -> list[StateDict]:
        """Return the state of every actor."""
        return [decode_state(state) for state in self._ask_all([Letter.GET_STATE] * self.num_actors)]

    def load_states(self, states: list[StateDict]) -> None:
        """Restore the state of every actor."""
        self._ask_all([Letter.SET_STATE + encode_state(state) for state in states])

    def check(self) -> None:
        """Raise `ActorDiedError` if an actor has ended."""
        for actor in self.actors.values():
            actor.check(self.silence_limit())

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Once `stop()` returns True, wait only a few more seconds for actors that do not answer.

        Actors that are stopped (SIGSTOP) are continued, so that their state can be saved.
        """
        self._stop = stop

    def close(self) -> None:
        """End the actors; may be called twice."""
        atexit.unregister(self.close)
        actors, self.actors = list(self.actors.values()), {}
        self.carrier.end(actors)

    def _start_all(self) -> None:
        for number in range(self.num_actors):
            self._start_first(number)

    def _start_first(self, number: int) -> None:
        """Start an actor for the first time; `UserError` if the system allows no more processes."""
        with within_limits(f"{self.num_actors} actors", key="actors.processes"):
            self._start(number)

    def _start(self, number: int) -> None:
        record = self.records[number]
        self.actors[number] = self.carrier.start(number, record.incarnation)
        record.started(self._now())

    def _ask_all(self, orders: list[bytes]) -> list[bytes]:
        for number, order in enumerate(orders):
            self.actors[number].send(order, self.silence_limit())
        return [self._answer_of(number) for number in range(self.num_actors)]

    def _answer_of(self, number: int) -> bytes:
        """Wait for the answer of an actor; `ActorDiedError` if it ended, or does not answer."""
        actor, silence = self.actors[number], self.silence_limit()
        while not self.carrier.ready({number: actor}, silence.wait_seconds):
            if reason := silence.exceeded():
                raise ActorDiedError(f"actor {number} {reason}")
        return actor.answer(silence)

    def _resume_actors(self) -> None:
        for actor in self.actors.values():
            actor.resume()
