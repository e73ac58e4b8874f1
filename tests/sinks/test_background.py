import time
from threading import Event as Flag

from polars.exceptions import PanicException

from atari_dqn.telemetry.events import Event, Notice
from atari_dqn.telemetry.sinks.background_sink import BackgroundSink


def notice(step: int) -> Notice:
    return Notice(kind="note", step=step, env_frames=4 * step, message="something")


class Recorder:
    """Records events; waits for `gate` before each event."""

    def __init__(self) -> None:
        self.gate, self.entered, self.closed = Flag(), Flag(), Flag()
        self.steps: list[int] = []

    def handle(self, event: Event) -> None:
        self.entered.set()
        self.gate.wait(10)
        assert isinstance(event, Notice)
        self.steps.append(event.step)

    def close(self) -> None:
        self.closed.set()


class Failing(Recorder):
    def handle(self, event: Event) -> None:
        raise ConnectionError("network is gone")


def complaints(sink: BackgroundSink) -> list[str]:
    return list(iter(sink.next_problem, None))


def test_every_event_arrives_in_order_before_close_returns() -> None:
    inner = Recorder()
    inner.gate.set()
    sink = BackgroundSink("slow", lambda: inner)
    for step in range(100):
        sink.handle(notice(step))
    sink.close()
    assert inner.steps == list(range(100))
    assert inner.closed.is_set()
    assert complaints(sink) == []


def test_a_full_queue_does_not_block_and_is_reported_once_with_the_number_lost() -> None:
    inner = Recorder()
    sink = BackgroundSink("slow", lambda: inner, capacity_events=2)
    sink.handle(notice(0))
    assert inner.entered.wait(10)
    for step in range(1, 8):
        sink.handle(notice(step))
    inner.gate.set()
    sink.close()
    assert inner.steps == [0, 1, 2]
    assert complaints(sink) == [
        "the sink slow cannot keep up; events that its queue has no room for are lost",
        "the sink slow lost 5 events",
    ]


def test_a_sink_that_fails_is_given_up_and_says_so_once() -> None:
    sink = BackgroundSink("wandb", Failing)
    for step in range(3):
        sink.handle(notice(step))
    sink.close()
    assert complaints(sink) == [
        "the sink wandb failed and is disabled (ConnectionError: network is gone); "
        "training continues without it"
    ]


def test_a_panic_of_a_library_is_a_failure_of_its_sink() -> None:
    class Panicking(Recorder):
        def handle(self, event: Event) -> None:
            raise PanicException("index out of bounds")

    sink = BackgroundSink("parquet", Panicking)
    sink.handle(notice(1))
    sink.close()
    assert complaints(sink)[0].startswith("the sink parquet failed and is disabled (PanicException: index")


def test_a_sink_that_cannot_be_made_harms_nothing() -> None:
    def fail() -> Recorder:
        raise OSError("no space left on device")

    sink = BackgroundSink("parquet", fail)
    sink.handle(notice(1))
    sink.close()
    assert complaints(sink)[0].startswith("the sink parquet failed and is disabled (OSError: no space")


def test_a_persistent_sink_gets_the_events_after_one_it_failed_on() -> None:
    seen = []

    class Once(Recorder):
        def handle(self, event: Event) -> None:
            seen.append(event)
            raise ValueError("no")

    sink = BackgroundSink("notify", Once, persistent=True)
    for step in range(3):
        sink.handle(notice(step))
    sink.close()
    assert len(seen) == 3
    assert complaints(sink) == ["the sink notify failed (ValueError: no); training continues"]


def test_a_sink_that_hangs_is_left_behind() -> None:
    sink = BackgroundSink("stuck", Recorder, close_seconds=0.2)
    sink.handle(notice(1))
    began = time.monotonic()
    sink.close()
    sink.close()
    assert time.monotonic() - began < 5
    assert complaints(sink) == ["the sink stuck did not end within 0.2 seconds; what it held may be lost"]
