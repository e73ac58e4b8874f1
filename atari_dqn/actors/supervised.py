"""Actors that are started again when they end: what they played and did not send is counted as dropped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from atari_dqn.actors.carried import CarriedActors
from atari_dqn.actors.carrier import Carrier, H
from atari_dqn.actors.orders import ActorDiedError, Order, encode_order
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo


class SupervisedActors(CarriedActors[H]):
    """Actors each of which is started by `started`, at first and again after it has ended.

    The time until a restart doubles each time, until the actor has sent a message again.
    """

    def __init__(
        self, spec: Spec, info: GameInfo, carrier: Carrier[H], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._started: list[int] = []
        super().__init__(spec, info, carrier)

    def started(self) -> list[int]:
        """Start the actors that are due, and return those that have been started since the last call."""
        self._start_due()
        started, self._started = self._started, []
        return started

    def order(self, actor: int, order: Order) -> None:
        """Order an actor to play a fragment; it gets none while it is ended."""
        if actor in self.actors:
            with suppress(ActorDiedError):  # its messages are read first, then its end is noticed
                self.actors[actor].send(encode_order(order))

    def receive(self, timeout_seconds: float) -> bytes | None:
        """Return the next message of any actor; None if there is none, or if an actor has ended."""
        if not self.actors:
            time.sleep(timeout_seconds)
            return None
        if not self._ready:
            self._ready.extend(self.carrier.ready(self.actors, timeout_seconds))
        if not self._ready:
            return None
        number = self._ready.popleft()
        try:
            return self.actors[number].answer()
        except ActorDiedError as error:
            self._lose(number, str(error))
            return None

    def check(self) -> None:
        """Start the actors that are due; those that have ended are noticed when they are read from."""
        self._start_due()

    def _start_all(self) -> None:
        """Start no actor yet: a resumed run first says which incarnations come next."""

    def _start_due(self) -> None:
        for number, record in enumerate(self.records):
            if number in self.actors or self._now() < record.next_start:
                continue
            self.actors[number] = self.carrier.start(number, record.incarnation)
            record.started(self._now())
            self._started.append(number)

    def _lose(self, number: int, error: str) -> None:
        """Count what an ended actor has not sent, and let it begin anew after a while."""
        self.carrier.end([self.actors.pop(number)])
        self.records[number].ended(self._now(), error, steps_played=self.carrier.steps_played(number))


def actors_of(spec: Spec, info: GameInfo, carrier: Carrier[H]) -> CarriedActors[H]:
    """Return the actors of a spec; only free-running ones begin anew."""
    kind = CarriedActors if spec.actors.mode == "lockstep" else SupervisedActors
    return kind(spec, info, carrier)
