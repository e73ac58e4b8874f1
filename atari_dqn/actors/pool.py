"""The interface of the learner to its actors, in its own process, in others, or on other machines."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from jaxtyping import Float32

from atari_dqn.actors.orders import Order
from atari_dqn.actors.records import Record
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.types import Emulators, StateDict


class ActorPool(Emulators, Protocol):
    """Actors, each of which plays one fragment for each order and sends it as a message."""

    @property
    def num_actors(self) -> int:
        """Number of actors."""
        ...

    @property
    def records(self) -> list[Record]:
        """The record of each actor."""
        ...

    def started(self) -> list[int]:
        """Start the actors that are due; return those that were started since the last call."""
        ...

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Publish weights; actors fetch the newest."""
        ...

    def order(self, actor: int, order: Order) -> None:
        """Order an actor to play a fragment; return at once."""
        ...

    def receive(self, timeout_seconds: float) -> bytes | None:
        """Return the next message of any actor; None if there is none within a time."""
        ...

    def silence_limit(self) -> SilenceLimit:
        """Return a limit on the waits for a message that the learner needs to go on."""
        ...

    def states(self) -> list[StateDict]:
        """Return the state of every actor; no order may be open."""
        ...

    def load_states(self, states: list[StateDict]) -> None:
        """Restore the state of every actor."""
        ...
