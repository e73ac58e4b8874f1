from collections.abc import Callable

import pytest

from atari_dqn.telemetry.events import Row
from atari_dqn.view.periods import Periods, RemainingTime

MakePeriod = Callable[..., list[Row]]


def record(frames: float, seconds: float, updates: float = 1.0) -> dict[str, float]:
    return {"env_frames": frames, "elapsed_seconds": seconds, "updates": updates}


@pytest.mark.parametrize("order", [1, -1])
def test_rows_of_one_step_make_one_record_in_either_order(period: MakePeriod, order: int) -> None:
    periods = Periods()
    records = [periods.add(row) for row in period(1000, elapsed_seconds=4.0, loss=0.5)[::order]]
    assert records[0] is None
    assert records[1] is not None
    assert (records[1]["loss"], records[1]["elapsed_seconds"]) == (0.5, 4.0)


def test_rows_of_different_steps_are_not_joined(period: MakePeriod) -> None:
    periods = Periods()
    assert periods.add(period(1000, elapsed_seconds=1.0)[0]) is None
    assert periods.add(period(2000, elapsed_seconds=2.0)[1]) is None


def test_time_left_is_at_the_rate_of_the_latest_periods() -> None:
    remaining = RemainingTime(10_000)
    remaining.add(record(1000, 5.0))
    remaining.add(record(2000, 15.0))
    assert remaining.seconds() == 80.0


@pytest.mark.parametrize(("periods", "seconds"), [(250, 751 * 1_248 / 249), (251, 750.0)])
def test_rate_is_that_of_the_latest_250_periods(periods: int, seconds: float) -> None:
    remaining = RemainingTime(1_000)
    for period in range(periods):  # the second one takes 1,000 seconds, the others a second each
        remaining.add(record(period, 999.0 + period if period else 0.0))
    assert remaining.seconds() == pytest.approx(seconds)


def test_prefill_does_not_count_towards_the_rate() -> None:
    remaining = RemainingTime(10_000)
    for made in (record(900, 0.1, updates=0), record(1000, 5.0), record(2000, 15.0)):
        remaining.add(made)
    assert remaining.seconds() == 80.0


def test_time_left_is_unknown_before_two_periods_of_learning() -> None:
    remaining = RemainingTime(10_000)
    remaining.add(record(1000, 5.0))
    assert remaining.seconds() is None


def test_no_time_is_left_past_the_budget() -> None:
    remaining = RemainingTime(1500)
    remaining.add(record(1000, 5.0))
    remaining.add(record(2000, 15.0))
    assert remaining.seconds() == 0.0


@pytest.mark.parametrize("frames", [1000.0, 900.0, float("nan")])
def test_time_left_is_unknown_where_frames_do_not_increase(frames: float) -> None:
    remaining = RemainingTime(10_000)
    remaining.add(record(1000, 5.0))
    remaining.add(record(frames, 15.0))
    assert remaining.seconds() is None
