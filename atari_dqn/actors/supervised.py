"""Actors that are started again when they end: what they played and did not send is counted as dropped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from atari_dqn.actors.local import LocalActors
from atari_dqn.actors.local_actor import start_actor
from atari_dqn.actors.orders import ActorDiedError, encode_order
from atari_dqn.actors.role import Order
from atari_dqn.actors.step_counts import StepCounts
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec


class SupervisedActors(LocalActors):
    """Actors in processes, each of which is started by `started`, at first and again after it has ended.

    The time until a restart doubles each time, until the actor has sent a message again.
    """

    def __init__(self, spec: Spec, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.counts = StepCounts(given(spec.actors.processes))
        self._started: list[int] = []
        super().__init__(spec)

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
            self._ready.extend(self._with_answers(timeout_seconds))
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
            self.actors[number] = start_actor(
                self._spec, number, record.incarnation, self._snapshot, self.counts
            )
            record.started(self._now())
            self._started.append(number)

    def _lose(self, number: int, error: str) -> None:
        """Count what an ended actor has not sent, and let it begin anew after a while."""
        self.actors.pop(number).end()
        self.records[number].ended(self._now(), error, steps_played=self.counts.played(number))
