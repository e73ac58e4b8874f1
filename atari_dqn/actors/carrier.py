"""The interface of a transport between the learner and its actors: processes of this machine, or Ray.

A transport starts and ends actors, and carries orders, messages and weights. All else is the same for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from jaxtyping import Float32

from atari_dqn.envs.silence import SilenceLimit


class Handle(Protocol):
    """An actor that was started."""

    def send(self, order: bytes, silence: SilenceLimit) -> None:
        """Send an order; `ActorDiedError` if the actor does not read it. `answer` says that one has ended.

        `silence`: the limit on waits for the actor to read a piece of it.
        """
        ...

    def answer(self, silence: SilenceLimit) -> bytes:
        """Receive the answer to the oldest open order; `ActorDiedError` if the actor ended or failed.

        The answer has begun to arrive. `silence`: the limit on waits for the rest of it.
        """
        ...

    def check(self, silence: SilenceLimit) -> None:
        """Raise `ActorDiedError` if the actor is known to have ended, with the error that it has sent.

        `silence`: the limit on waits for the rest of what it has sent.
        """
        ...

    def resume(self) -> None:
        """Continue the actor if its process is stopped (SIGSTOP) and the learner can reach it."""
        ...


H = TypeVar("H", bound=Handle)


class Carrier(Protocol[H]):
    """Starts and ends actors, and carries what they receive and send."""

    def start(self, number: int, incarnation: int) -> H:
        """Start an actor; return at once."""
        ...

    def ready(self, actors: Mapping[int, H], timeout_seconds: float) -> list[int]:
        """Return the actors whose next answer has begun to arrive, or that have ended; wait for the first."""
        ...

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Publish weights; actors fetch the newest."""
        ...

    def steps_played(self, number: int) -> int:
        """Return the number of steps that an actor has played, in all of its incarnations."""
        ...

    def end(self, actors: Sequence[H]) -> None:
        """End actors, whether they have ended already or not."""
        ...
