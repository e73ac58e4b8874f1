import pytest

from atari_dqn.clock import Clock, Every, frames_to_steps, steps_to_frames
from atari_dqn.schedule import LinearSchedule


def clock(*, steps: int = 0, updates: int = 0, frame_skip: int = 4, prefill_steps: int = 10) -> Clock:
    return Clock(frame_skip=frame_skip, prefill_steps=prefill_steps, steps=steps, updates=updates)


@pytest.mark.parametrize(("frames", "steps"), [(0, 0), (1, 1), (4, 1), (5, 2), (18_000, 4_500)])
def test_frames_to_steps_rounds_up(frames: int, steps: int):
    assert frames_to_steps(frames, frame_skip=4) == steps


@pytest.mark.fault("D07")
def test_frame_skip_of_3_scales_every_count():
    run = clock(steps=100, frame_skip=3, prefill_steps=40)
    assert run.env_frames == 300
    assert run.learning_frames == 180
    assert frames_to_steps(18_000, frame_skip=3) == 6_000
    assert frames_to_steps(10, frame_skip=3) == 4
    assert steps_to_frames(6_000, frame_skip=3) == 18_000


def test_learning_starts_after_the_last_step_of_the_prefill():
    assert not clock(steps=9).learning
    assert clock(steps=10).learning


def test_learning_frames_are_zero_before_the_prefill_ends():
    assert [clock(steps=steps).learning_frames for steps in (0, 9, 10, 11)] == [0, 0, 0, 4]


@pytest.mark.fault("D06")
def test_epsilon_is_1_at_the_first_learning_step():
    epsilon = LinearSchedule(start=1.0, end=0.1, decay_frames=1_000_000)
    first = clock(steps=50_000, prefill_steps=50_000)
    assert first.learning
    assert epsilon.at(first.learning_frames) == 1.0
    assert epsilon.at(clock(steps=50_001, prefill_steps=50_000).learning_frames) == pytest.approx(0.9999964)


def test_epsilon_reaches_its_end_a_million_frames_after_the_prefill():
    epsilon = LinearSchedule(start=1.0, end=0.1, decay_frames=1_000_000)
    assert epsilon.at(clock(steps=299_999, prefill_steps=50_000).learning_frames) > 0.1
    assert epsilon.at(clock(steps=300_000, prefill_steps=50_000).learning_frames) == 0.1


def test_one_update_is_due_each_period_after_the_prefill():
    owed = [clock(steps=steps).updates_due(period_steps=4) for steps in (0, 10, 13, 14, 17, 18)]
    assert owed == [0, 0, 0, 1, 1, 2]


def test_updates_made_are_no_longer_due():
    assert clock(steps=18, updates=1).updates_due(period_steps=4) == 1


def test_after_a_refill_updates_are_due_for_the_periods_after_its_prefill_alone():
    run = clock(steps=100, updates=20)
    run.refill()
    run.advance(steps=10, updates=0)
    assert [run.updates_due(period_steps=4, updates_per_period=2), run.filling] == [0, False]
    run.advance(steps=4, updates=0)
    assert run.updates_due(period_steps=4, updates_per_period=2) == 2


def test_clock_is_restored_from_its_state():
    run = clock(steps=18, updates=2)
    run.refill()
    again = clock()
    again.load_state_dict(run.state_dict())
    assert again == run


def test_every_reports_each_multiple_once():
    every = Every(period=10)
    assert [count for count in range(35) if every.due(count)] == [10, 20, 30]


def test_every_is_not_due_twice_at_the_same_count():
    every = Every(period=10)
    assert every.due(10)
    assert not every.due(10)


def test_every_reports_multiples_passed_together_once():
    every = Every(period=10)
    assert [count for count in range(0, 100, 16) if every.due(count)] == [16, 32, 48, 64, 80, 96]
    assert [count for count in (125, 126, 130) if every.due(count)] == [125, 130]


def test_every_does_not_report_again_after_a_resume():
    every, again = Every(period=10), Every(period=10)
    assert every.due(20)
    again.load_state_dict(every.state_dict())
    assert not again.due(29)
    assert again.due(30)


def test_is_due_does_not_mark():
    every = Every(period=10)
    assert every.is_due(10)
    assert every.is_due(10)
    every.mark(10)
    assert not every.is_due(19)


def test_marking_an_earlier_count_changes_nothing():
    every = Every(period=10)
    every.mark(30)
    every.mark(10)
    assert not every.is_due(39)
