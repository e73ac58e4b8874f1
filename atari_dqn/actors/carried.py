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
from atari_dqn.actors.orders import Letter, Order, encode_order
from atari_dqn.actors.records import Record
from atari_dqn.actors.state_codec import decode_state, encode_state
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StateDict


class CarriedActors(Generic[H]):
    """Implements `ActorPool`. All actors are started at once, and none is started again.

    If one ends, the call that waits for it raises `ActorDiedError`; after that, only `close` may be called.
    """

    def __init__(self, spec: Spec, info: GameInfo, carrier: Carrier[H]) -> None:
        self.info, self.carrier = info, carrier
        self.num_envs = spec.env.num_envs
        self.num_actors = self.num_processes = given(spec.actors.processes)
        self.records = [Record() for _ in range(self.num_actors)]
        self.actors: dict[int, H] = {}
        """The actors that are alive, by number."""
        self._ready: deque[int] = deque()
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
        self.actors[actor].send(encode_order(order))

    def receive(self, timeout_seconds: float) -> bytes | None:
        """Return the next message of any actor; None if there is none within a time."""
        if not self._ready:
            self._ready.extend(self.carrier.ready(self.actors, timeout_seconds))
        return self.actors[self._ready.popleft()].answer() if self._ready else None

    def states(self) -> list[StateDict]:
        """Return the state of every actor."""
        return [decode_state(state) for state in self._ask_all([Letter.GET_STATE] * self.num_actors)]

    def load_states(self, states: list[StateDict]) -> None:
        """Restore the state of every actor."""
        self._ask_all([Letter.SET_STATE + encode_state(state) for state in states])

    def check(self) -> None:
        """Raise `ActorDiedError` if an actor has ended."""
        for actor in self.actors.values():
            actor.check()

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Do nothing: a message takes as long as a fragment, and an actor that ended is noticed."""

    def close(self) -> None:
        """End the actors; may be called twice."""
        atexit.unregister(self.close)
        actors, self.actors = list(self.actors.values()), {}
        self.carrier.end(actors)

    def _start_all(self) -> None:
        for number in range(self.num_actors):
            self.actors[number] = self.carrier.start(number, 0)
            self.records[number].started(time.monotonic())

    def _ask_all(self, orders: list[bytes]) -> list[bytes]:
        for number, order in enumerate(orders):
            self.actors[number].send(order)
        return [self.actors[number].answer() for number in range(self.num_actors)]
