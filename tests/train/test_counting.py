"""Views get the counters with one event, and no further events for their changes."""

from pathlib import Path

from tiny import run

from atari_dqn.clock import Clock
from atari_dqn.telemetry.events import Event, Notice, TrainingStarted


class Kept:
    """A view that records every event with the counters at its time."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.frames_at_ends: list[int] = []

    def handle(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Notice) and event.kind == "finished":
            self.frames_at_ends += [
                e.counters.env_frames for e in self.events if isinstance(e, TrainingStarted)
            ]

    def close(self) -> None:
        pass


def test_a_view_is_given_the_counters_once_and_they_move(tmp_path: Path) -> None:
    view = Kept()
    run(tmp_path / "run", views=[view])
    assert len([event for event in view.events if isinstance(event, TrainingStarted)]) == 1
    assert view.frames_at_ends == [1_200]


def test_the_replay_is_filling_until_its_prefill_is_played() -> None:
    clock = Clock(frame_skip=4, prefill_steps=100)
    clock.advance(steps=99, updates=0)
    assert clock.filling
    clock.advance(steps=1, updates=0)
    assert not clock.filling


def test_the_replay_is_filling_after_a_resume_without_its_rows() -> None:
    clock = Clock(frame_skip=4, prefill_steps=100, steps=1_000)
    clock.refill()
    assert clock.filling
