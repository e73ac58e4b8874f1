"""Report actors that have ended: at most one notice of each in a minute, so that the log is not flooded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from atari_dqn.actors.records import Record

PERIOD_SECONDS = 60.0
"""Shortest time between two notices of one actor."""


class ActorEnds:
    """Compares the records of actors with what was reported of them."""

    def __init__(self, actors: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._restarts = [0] * actors
        """Restarts of each actor at its last notice."""
        self._due = [-math.inf] * actors

    def notices(self, records: Sequence[Record]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield kind, message and data of a notice for each actor that has ended since its last notice.

        An end within a minute after a notice is reported when the minute is over.
        """
        now = self._now()
        for number, record in enumerate(records):
            if record.restarts == self._restarts[number] or now < self._due[number]:
                continue
            self._restarts[number], self._due[number] = record.restarts, now + PERIOD_SECONDS
            message = f"{record.last_error}; it is started again (restart {record.restarts:,})"
            yield "actor ended", message, {"actor": number, "restarts": record.restarts}
