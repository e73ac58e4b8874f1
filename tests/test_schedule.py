import pytest

from atari_dqn.schedule import LinearSchedule


@pytest.mark.parametrize(("frames", "value"), [(0, 1.0), (250, 0.775), (500, 0.55), (1000, 0.1), (9999, 0.1)])
def test_a_linear_schedule_falls_in_a_straight_line_and_stays(frames: int, value: float):
    assert LinearSchedule(start=1.0, end=0.1, decay_frames=1000).at(frames) == pytest.approx(value)


def test_a_linear_schedule_ends_at_its_end_exactly():
    assert LinearSchedule(start=1.0, end=0.1, decay_frames=3).at(3) == 0.1


def test_a_linear_schedule_may_rise():
    assert LinearSchedule(start=0.4, end=1.0, decay_frames=100).at(50) == pytest.approx(0.7)
