"""Run a sink on its own thread behind a queue that never blocks, so that it may be slow or fail."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from queue import Full, Queue
from threading import Thread

from atari_dqn.telemetry.events import Event, Sink

CAPACITY_EVENTS = 10_000
"""With a row of each table every 1,000 steps this is hours of training."""
CLOSE_SECONDS = 30.0


class LeftOutError(Exception):
    """A sink has processed an event except for a part, which the message names with the reason."""


class BackgroundSink:
    """Passes events to a sink that is constructed, used and closed on another thread.

    A sink that raises is closed and gets no further events; with `persistent` only that event is lost, and
    with `LeftOutError` only a part of it. A sink that cannot keep up loses events. `next_problem` reports
    each problem once; no exception reaches the caller, and only `close` waits, for at most `close_seconds`.
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
        self._problems: deque[str] = deque()
        self._failed = self._closed = False
        self._reported: set[str] = set()
        self._lost_events = 0
        # A daemon thread, so that a sink that hangs does not keep the program from exiting.
        self._thread = Thread(target=self._work, name=f"sink {name}", daemon=True)
        self._thread.start()

    def handle(self, event: Event) -> None:
        """Queue an event; it is lost if the queue is full."""
        if self._failed:
            return
        try:
            self._queue.put_nowait(event)
        except Full:
            if not self._lost_events:
                self._report("cannot keep up; events that its queue has no room for are lost")
            self._lost_events += 1

    def next_problem(self) -> str | None:
        """Return the next problem that was not returned yet, as a sentence; None if there is none."""
        return self._problems.popleft() if self._problems else None

    def close(self) -> None:
        """Let the sink process its queue and close; abandon it if that takes too long.

        May be called twice.
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
            self._report(f"did not end within {self._close_seconds:g} seconds; what it held may be lost")
        elif self._lost_events:
            self._report(f"lost {self._lost_events:,} events")

    def _work(self) -> None:
        try:
            sink = self._make()
            try:
                while (event := self._queue.get()) is not None:
                    self._deliver(sink, event)
            finally:
                sink.close()
        except BaseException as error:  # libraries raise exceptions of any type, polars its `PanicException`
            self._failed = True
            self._report(f"failed and is disabled ({_cause(error)}); training continues without it")

    def _deliver(self, sink: Sink, event: Event) -> None:
        try:
            sink.handle(event)
        except LeftOutError as error:
            self._report(f"left out {error}")
        except Exception as error:
            if not self._persistent:
                raise
            self._report(f"failed ({_cause(error)}); training continues")

    def _report(self, sentence: str) -> None:
        if sentence not in self._reported:
            self._reported.add(sentence)
            self._problems.append(f"the sink {self.name} {sentence}")


def _cause(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
