"""A run has ended when its events say so, and a minute after its process has gone without saying so."""

from dataclasses import dataclass

import pytest

from atari_dqn.run.tailing.ending import EndDetector


@dataclass
class FakeStatus:
    """State of a run and when it last wrote, as `RunStatus` has them."""

    state: str
    last_written: float = 0.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.end = EndDetector(now=lambda: self.seconds)

    def has_ended(self, after: float, state: str, **times: float) -> bool:
        self.seconds += after
        return self.end.has_ended(FakeStatus(state, **times))  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["finished", "halted", "failed", "interrupted", "imported"])
def test_a_run_with_an_event_of_its_end_has_ended_at_once(state: str) -> None:
    assert Clock().has_ended(0, state)


@pytest.mark.parametrize("state", ["new", "running"])
def test_a_run_that_goes_on_has_not_ended_however_long_it_takes(state: str) -> None:
    clock = Clock()
    assert not clock.has_ended(0, state)
    assert not clock.has_ended(1e6, state)


@pytest.mark.parametrize("state", ["stopped", "silent"])
def test_a_run_without_a_process_has_ended_after_a_minute(state: str) -> None:
    clock = Clock()
    assert not clock.has_ended(0, state)
    assert not clock.has_ended(59, state)
    assert clock.has_ended(1, state)


def test_the_minute_begins_again_with_a_run_that_was_resumed() -> None:
    clock = Clock()
    assert not clock.has_ended(0, "stopped")
    assert not clock.has_ended(50, "running")
    assert not clock.has_ended(5, "stopped")
    assert not clock.has_ended(55, "stopped")
    assert clock.has_ended(5, "stopped")


def test_a_run_that_writes_has_not_ended_though_its_lock_is_not_held_here() -> None:
    clock = Clock()
    assert not clock.has_ended(0, "stopped", last_written=1.0)
    assert not clock.has_ended(600, "stopped", last_written=598.0)


def test_a_run_whose_files_are_dated_ahead_of_the_clock_here_has_ended_after_a_minute() -> None:
    clock = Clock()
    assert not clock.has_ended(0, "stopped", last_written=1e9)
    assert clock.has_ended(60, "stopped", last_written=1e9)
