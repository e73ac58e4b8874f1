"""A sink on a thread of its own, behind a queue that never blocks: it may be slow or fail."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from queue import Full, Queue
from threading import Thread

from atari_dqn.telemetry.events import Event, Sink

CAPACITY_EVENTS = 10_000
"""At a row of each table every 1,000 steps this is hours of training."""
CLOSE_SECONDS = 30.0


class BackgroundSink:
    """Hands events to a sink that is made, used and closed on another thread.

    What goes wrong is told once, by `complaint`: a sink that raises is given up (with `persistent` only the
    event is), one that cannot keep up loses events. Nothing is ever raised, and only `close` waits, for
    `close_seconds` at most.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Sink],
        *,
        persistent: bool = False,
        capacity_events: int = CAPACITY_EVENTS,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self.name = name
        self._make, self._persistent = make, persistent
        self._close_seconds = close_seconds
        self._queue: Queue[Event | None] = Queue(maxsize=capacity_events)
        self._complaints: deque[str] = deque()
        self._failed = self._closed = False
        self._told: set[str] = set()
        self._lost_events = 0
        # A daemon: one that hangs must not keep the program from ending.
        self._thread = Thread(target=self._work, name=f"sink {name}", daemon=True)
        self._thread.start()

    def handle(self, event: Event) -> None:
        """Queue an event; with the queue full it is lost, and so are those after it until there is room."""
        if self._failed:
            return
        try:
            self._queue.put_nowait(event)
        except Full:
            if not self._lost_events:
                self._complain("cannot keep up; events that its queue has no room for are lost")
            self._lost_events += 1

    def complaint(self) -> str | None:
        """Return what went wrong since the last call, one sentence at a time; None if nothing did."""
        return self._complaints.popleft() if self._complaints else None

    def close(self) -> None:
        """Let the sink finish what is queued and close; one that does not come to an end is left behind.

        Safe to call twice.
        """
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + self._close_seconds
        try:
            self._queue.put(None, timeout=0 if self._failed else self._close_seconds)
        except Full:
            pass
        else:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._complain(f"did not end within {self._close_seconds:g} seconds; what it held may be lost")
        elif self._lost_events:
            self._complain(f"lost {self._lost_events:,} events")

    def _work(self) -> None:
        try:
            sink = self._make()
            try:
                while (event := self._queue.get()) is not None:
                    self._give(sink, event)
            finally:
                sink.close()
        except Exception as error:  # libraries and networks fail in ways that nobody can list
            self._failed = True
            self._complain(f"failed and is given up ({_cause(error)}); training goes on without it")

    def _give(self, sink: Sink, event: Event) -> None:
        try:
            sink.handle(event)
        except Exception as error:
            if not self._persistent:
                raise
            self._complain(f"failed ({_cause(error)}); training goes on")

    def _complain(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._complaints.append(f"the sink {self.name} {sentence}")


def _cause(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
