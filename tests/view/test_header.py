"""The heading of the live view between events, from a run's counters or from the age of its files."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from atari_dqn.clock import Clock
from atari_dqn.telemetry.events import Notice, Progress, Row, TrainingStarted
from atari_dqn.view.header import Header
from atari_dqn.view.periods import Periods, Speed


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def drawn(header: Header, columns: int = 80) -> str:
    console = Console(file=io.StringIO(), width=columns)
    console.print(header.draw(columns))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def header(time: Time) -> Header:
    return Header(title="pong", total_frames=40_000, now=time)


@pytest.fixture
def clock() -> Clock:
    return Clock(frame_skip=4, prefill_steps=1_000)


def moved(header: Header, clock: Clock, time: Time, *, steps: int, seconds: float, updates: int = 0) -> str:
    """Return the heading after so many steps in so many seconds, one of which is drawn before."""
    drawn(header)
    clock.advance(steps=steps, updates=updates)
    time.seconds += seconds
    return drawn(header)


def test_clock_moves_while_nothing_happens(header: Header, time: Time) -> None:
    time.seconds = 65.0
    assert "starting  1m 05s" in drawn(header)


def test_clock_moves_while_compiling(header: Header, time: Time) -> None:
    header.handle(Notice(kind="compiling", step=0, env_frames=0, message="up to a minute"))
    time.seconds = 12.0
    assert "compiling  12s" in drawn(header)


def test_frames_and_speed_move_while_the_replay_fills(header: Header, clock: Clock, time: Time) -> None:
    header.handle(TrainingStarted(counters=clock))
    text = moved(header, clock, time, steps=500, seconds=2.0)
    assert "filling the replay  2s" in text
    assert "2k/40k   5.0%    1,000 frames/s        - left" in text


def test_frames_and_speed_move_between_rows(header: Header, clock: Clock, time: Time) -> None:
    clock.advance(steps=1_000, updates=0)
    header.handle(TrainingStarted(counters=clock))
    text = moved(header, clock, time, steps=1_000, seconds=4.0, updates=250)
    assert "training  4s" in text
    assert "8k/40k  20.0%    1,000 frames/s      32s left" in text


def test_speed_of_the_filling_is_not_the_training_s(header: Header, clock: Clock, time: Time) -> None:
    header.handle(TrainingStarted(counters=clock))
    moved(header, clock, time, steps=1_000, seconds=1.0)
    assert "100 frames/s" in moved(header, clock, time, steps=50, seconds=2.0, updates=12)


def test_clock_moves_while_an_evaluation_is_played(header: Header, clock: Clock, time: Time) -> None:
    header.handle(TrainingStarted(counters=clock))
    header.handle(Progress(activity="full evaluation", done=3, total=30))
    assert "full evaluation 3/30  9s" in moved(header, clock, time, steps=0, seconds=9.0)


def test_time_left_shrinks_between_rows(
    header: Header, clock: Clock, time: Time, period: Callable[..., list[object]]
) -> None:
    clock.advance(steps=2_000, updates=500)
    header.handle(TrainingStarted(counters=clock))
    periods = Periods()
    rows = [*period(1_000, elapsed_seconds=4.0), *period(2_000, elapsed_seconds=8.0)]
    for record in filter(None, map(periods.add, rows)):
        header.period(record)
    assert "32s left" in drawn(header)
    assert "28s left" in moved(header, clock, time, steps=1_000, seconds=4.0, updates=250)


def test_a_run_followed_from_its_files_says_how_old_they_are(time: Time) -> None:
    header = Header(
        title="pong", total_frames=4, now=time, state_text=lambda: f"running, written {time():.0f}s ago"
    )
    time.seconds = 5.0
    assert "running, written 5s ago" in drawn(header)


def test_frames_of_a_run_followed_from_its_files_are_those_of_its_last_notice(time: Time) -> None:
    header = Header(title="pong", total_frames=60_000, now=time, state_text=lambda: "interrupted")
    header.handle(Notice(kind="interrupted", step=8_266, env_frames=33_064, message="by SIGINT"))
    assert "33.1k/60k  55.1%" in drawn(header)


def test_frames_of_a_run_followed_from_its_files_are_those_of_its_last_evaluation(
    time: Time, row: Callable[..., Row]
) -> None:
    header = Header(title="pong", total_frames=30_000, now=time, state_text=lambda: "imported")
    header.handle(row("eval_log", env_frames=29_512))
    assert "29.5k/30k  98.4%" in drawn(header)


def test_a_run_that_ends_after_its_budget_is_100_percent(time: Time) -> None:
    header = Header(title="pong", total_frames=30_000, now=time, state_text=lambda: "finished")
    header.handle(Notice(kind="finished", step=7_506, env_frames=30_024, message=""))
    assert "30k/30k 100.0%" in drawn(header)


def test_speed_is_of_the_latest_seconds(time: Time) -> None:
    speed = Speed(time)
    for seconds, frames in ((0, 0), (100, 1_000), (105, 2_000), (110, 3_000)):
        time.seconds = seconds
        speed.add(frames)
    assert speed.frames_per_second() == 200.0


@pytest.mark.parametrize(
    ("columns", "figures"),
    [
        (50, "5k/10M   0.1%        0 frames/s        - left"),
        (40, "5k/10M  0 frames/s  0.1%  - left"),
        (30, "0 frames/s  0.1%  - left"),
        (16, "0.1%  - left"),
    ],
)
def test_narrow_terminal_leaves_figures_out_and_cuts_none(time: Time, columns: int, figures: str) -> None:
    header = Header(title="pong", total_frames=10_000_000, now=time, state_text=lambda: "paused")
    header.handle(Notice(kind="started", step=0, env_frames=5_000, message=""))
    title, line = drawn(header, columns).splitlines()
    assert line.endswith(figures)
    assert (title.split(), len(title) <= columns, len(line) <= columns) == (["pong", "paused"], True, True)
