import pytest

from atari_dqn.schedule import EpsilonSpectrum, LinearSchedule


@pytest.mark.parametrize(("frames", "value"), [(0, 1.0), (250, 0.775), (500, 0.55), (1000, 0.1), (9999, 0.1)])
def test_linear_schedule_decreases_linearly_and_then_stays_constant(frames: int, value: float):
    assert LinearSchedule(start=1.0, end=0.1, decay_frames=1000).at(frames) == pytest.approx(value)


def test_linear_schedule_ends_exactly_at_its_end_value():
    assert LinearSchedule(start=1.0, end=0.1, decay_frames=3).at(3) == 0.1


def test_linear_schedule_may_increase():
    assert LinearSchedule(start=0.4, end=1.0, decay_frames=100).at(50) == pytest.approx(0.7)


APE_X = EpsilonSpectrum(base=0.4, exponent=7.0, num_envs=8)


def test_spectrum_of_eight_environments_has_the_powers_of_its_base():
    # 0.4^(1 + 7 i / 7) = 0.4^(1 + i)
    powers = [0.4, 0.16, 0.064, 0.0256, 0.01024, 0.004096, 0.0016384, 0.00065536]
    assert APE_X.at(0) == pytest.approx(powers, rel=1e-12)


def test_spectrum_of_two_environments_has_both_ends():
    ends = EpsilonSpectrum(base=0.5, exponent=3.0, num_envs=2).at(0)
    assert ends == pytest.approx([0.5, 0.0625])


def test_spectrum_is_the_same_at_every_frame():
    assert APE_X.at(0).tolist() == APE_X.at(10**9).tolist()


def test_spectrum_as_text_is_its_range():
    assert str(APE_X) == "ε 0.4 to 0.00066"
