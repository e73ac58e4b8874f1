"""Actors in the learner's process, which play when they are ordered to: the reference of every transport."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float32

from atari_dqn.actors.build import build_role
from atari_dqn.actors.message import encode
from atari_dqn.actors.orders import Order
from atari_dqn.actors.records import Record
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StateDict


class InlineActors:
    """Implements `ActorPool` and, for its actors, `Published`. Messages are encoded as in every transport."""

    def __init__(self, spec: Spec) -> None:
        self.num_actors, self.num_envs = given(spec.actors.processes), spec.env.num_envs
        self._published: tuple[int, np.ndarray] = (-1, np.zeros(0, dtype=np.float32))
        with _one_thread():
            self._roles = [build_role(spec, number, self) for number in range(self.num_actors)]
        self.records = [Record() for _ in self._roles]
        self._messages: deque[bytes] = deque()
        self._new = list(range(self.num_actors))
        self.num_processes = 1

    @property
    def info(self) -> GameInfo:
        """Properties of the game."""
        return self._roles[0].envs.info

    @property
    def busy_seconds(self) -> float:
        """Time spent in steps so far."""
        return sum(role.envs.busy_seconds for role in self._roles)

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Publish weights."""
        self._published = version, flat

    def fetch(self, least_version: int) -> tuple[int, np.ndarray]:
        """Return the newest version and its weights."""
        assert self._published[0] >= least_version
        return self._published

    def started(self) -> list[int]:
        """Return every actor at the first call."""
        new, self._new = self._new, []
        return new

    def order(self, actor: int, order: Order) -> None:
        """Play a fragment."""
        with _one_thread():
            self._messages.append(encode(self._roles[actor].play(order)))

    def receive(self, timeout_seconds: float) -> bytes | None:
        """Return the next message; None if there is none."""
        del timeout_seconds
        return self._messages.popleft() if self._messages else None

    def silence_limit(self) -> SilenceLimit:
        """Return a limit of no wait: a message is there when its order has been given."""
        return SilenceLimit(
            lambda: False, most_waits=1, waits_at_end=1, wait_seconds=0.0, resume=lambda: None
        )

    def states(self) -> list[StateDict]:
        """Return the state of every actor."""
        assert not self._messages
        return [role.state_dict() for role in self._roles]

    def load_states(self, states: list[StateDict]) -> None:
        """Restore the state of every actor."""
        with _one_thread():
            for role, state in zip(self._roles, states, strict=True):
                role.load_state_dict(state)

    def check(self) -> None:
        """Do nothing: there are no other processes."""

    def stop_waiting_when(self, stop: Callable[[], bool]) -> None:
        """Do nothing: there are no other processes to wait for."""

    def close(self) -> None:
        """Free the environments."""
        for role in self._roles:
            role.close()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute as an actor's process does, with one thread: sums round differently with several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
