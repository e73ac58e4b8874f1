"""Actors that are started again when they end: what they played and did not send is counted as dropped."""

from __future__ import annotations

import time
from collections.abc import Callable

from atari_dqn.actors.carried import CarriedActors
from atari_dqn.actors.carrier import Carrier, H
from atari_dqn.actors.orders import ActorDiedError, Order
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

MOST_ENDS_PER_ACTOR = 8
"""Ends in a row after which the actors are given up, for each actor: those of all are counted together.

The times until the restarts then add up to 13 seconds at least, so that a moment without free memory or
processes ends no run, and a run whose actors cannot play at all ends within minutes.
"""


class SupervisedActors(CarriedActors[H]):
    """Actors each of which is started by `started`, at first and again after it has ended.

    The time until a restart doubles each time, until the actor has sent a message again. If actors end again
    and again, and none sends a message in between, `ActorDiedError` is raised with the last reason.
    """

    def __init__(
        self, spec: Spec, info: GameInfo, carrier: Carrier[H], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._started: list[int] = []
        self._ends_in_a_row = 0
        """Ends of actors since the last message of any actor."""
        super().__init__(spec, info, carrier, now)

    def started(self) -> list[int]:
        """Start the actors that are due, and return those that have been started since the last call."""
        self._start_due()
        started, self._started = self._started, []
        return started

    def order(self, actor: int, order: Order) -> None:
        """Order an actor to play a fragment; it gets none while it is ended."""
        if actor in self.actors:
            try:
                super().order(actor, order)
            except ActorDiedError as error:
                self._lose(actor, str(error))

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
            message = self.actors[number].answer(self.silence_limit())
        except ActorDiedError as error:
            self._lose(number, str(error))
            return None
        self._ends_in_a_row = 0
        return message

    def check(self) -> None:
        """Start the actors that are due; those that have ended are noticed when they are read from."""
        self._start_due()

    def _start_all(self) -> None:
        """Start no actor yet: a resumed run first says which incarnations come next."""

    def _start_due(self) -> None:
        for number, record in enumerate(self.records):
            if number in self.actors or self._now() < record.next_start:
                continue
            if record.restarts:
                self._start_again(number)
            else:
                self._start_first(number)

    def _start(self, number: int) -> None:
        super()._start(number)
        self._started.append(number)

    def _start_again(self, number: int) -> None:
        """Start an actor that has ended; a start that the system refuses is one more end."""
        try:
            self._start(number)
        except OSError as error:
            self._count_end(number, f"actor {number} could not be started: {error}")

    def _lose(self, number: int, error: str) -> None:
        """Free an ended actor, and count its end."""
        self.carrier.end([self.actors.pop(number)])
        if number in self._ready:
            self._ready.remove(number)
        self._count_end(number, error)

    def _count_end(self, number: int, error: str) -> None:
        """Count what an actor has not sent, and let it begin anew after a while, or give all actors up."""
        self.records[number].ended(self._now(), error, steps_played=self.carrier.steps_played(number))
        self._ends_in_a_row += 1
        if self._ends_in_a_row >= MOST_ENDS_PER_ACTOR * self.num_actors:
            raise ActorDiedError(
                f"{error}; actors have ended {self._ends_in_a_row:,} times in a row without a message"
            )


def actors_of(spec: Spec, info: GameInfo, carrier: Carrier[H]) -> CarriedActors[H]:
    """Return the actors of a spec; only free-running ones begin anew."""
    kind = CarriedActors if spec.actors.mode == "lockstep" else SupervisedActors
    return kind(spec, info, carrier)
