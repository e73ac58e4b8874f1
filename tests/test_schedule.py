import pytest

from atari_dqn.schedule import LinearSchedule


@pytest.mark.parametrize(("frames", "value"), [(0, 1.0), (250, 0.775), (500, 0.55), (1000, 0.1), (9999, 0.1)])
def test_linear_schedule_decreases_linearly_and_then_stays_constant(frames: int, value: float):
    assert LinearSchedule(start=1.0, end=0.1, decay_frames=1000).at(frames) == pytest.approx(value)


def test_linear_schedule_ends_exactly_at_its_end_value():
    assert LinearSchedule(start=1.0, end=0.1, decay_frames=3).at(3) == 0.1


def test_linear_schedule_may_increase():
    assert LinearSchedule(start=0.4, end=1.0, decay_frames=100).at(50) == pytest.approx(0.7)
