"""Actors in processes of this machine: orders and messages through pipes, weights through shared memory."""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import wait

import numpy as np
import torch
from jaxtyping import Float32

from atari_dqn.actors.local_actor import LocalActor, start_actor
from atari_dqn.actors.orders import Letter, encode_order
from atari_dqn.actors.records import Record
from atari_dqn.actors.role import Order
from atari_dqn.actors.snapshot import SharedSnapshot
from atari_dqn.actors.state_codec import decode_state, encode_state
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import make_envs
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StateDict


class LocalActors:
    """Implements `ActorPool` with a process for each actor.

    If one ends, the call that waits for it raises `ActorDiedError`; after that, only `close` may be called.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec, self.num_envs = spec, spec.env.num_envs
        self.num_actors = self.num_processes = given(spec.actors.processes)
        self.records = [Record() for _ in range(self.num_actors)]
        self._info = game_info(spec)
        size = FlatWeights(build_network(spec, self._info, torch.device("cpu"))).size
        self._snapshot = SharedSnapshot(size)
        self.actors: dict[int, LocalActor] = {}
        """The actors that are alive, by number."""
        self._ready: deque[int] = deque()
        self.busy_seconds = 0.0
        atexit.register(self.close)  # at exit the interpreter joins its children, which wait for orders
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    @property
    def info(self) -> GameInfo:
        """Properties of the game."""
        return self._info

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Publish weights."""
        self._snapshot.publish(version, flat)

    def started(self) -> list[int]:
        """Return no actors: all were started at once, and none is started again."""
        return []

    def order(self, actor: int, order: Order) -> None:
        """Order an actor to play a fragment."""
        self.actors[actor].send(encode_order(order))

    def receive(self, timeout_seconds: float) -> bytes | None:
        """Return the next message of any actor; None if there is none within a time."""
        if not self._ready:
            self._ready.extend(self._with_answers(timeout_seconds))
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
            if actor.process.exitcode is not None:
                raise actor.died(actor.exit_reason())

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Do nothing: a message takes as long as a fragment, and an actor that ended is noticed."""

    def close(self) -> None:
        """End the processes; may be called twice."""
        atexit.unregister(self.close)
        actors, self.actors = list(self.actors.values()), {}
        for actor in actors:
            actor.pipe.close()  # all of them first, so that they end at the same time
        for actor in actors:
            actor.end()

    def _start_all(self) -> None:
        for number in range(self.num_actors):
            self.actors[number] = start_actor(self._spec, number, 0, self._snapshot)

    def _ask_all(self, orders: list[bytes]) -> list[bytes]:
        for number, order in enumerate(orders):
            self.actors[number].send(order)
        return [self.actors[number].answer() for number in range(self.num_actors)]

    def _with_answers(self, timeout_seconds: float) -> list[int]:
        """Return the actors whose answer has begun to arrive, or that have ended."""
        ready = wait([actor.pipe for actor in self.actors.values()], timeout_seconds)
        return [number for number, actor in self.actors.items() if actor.pipe in ready]


def game_info(spec: Spec) -> GameInfo:
    """Return the properties of a spec's game."""
    envs = make_envs(
        game=spec.game,
        env=spec.env,
        num_envs=spec.env.num_envs,
        part=range(1),
        seed=spec.seed,
        stream="training",
    )
    try:
        return envs.info
    finally:
        envs.close()
