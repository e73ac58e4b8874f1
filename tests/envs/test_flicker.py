"""Flicker: frames that are obscured with a fixed probability."""

from dataclasses import replace

import numpy as np
import pytest
from playing import CATCH, as_bytes, copied, play, random_actions

STEPS = 100
FLICKER = replace(CATCH, screen_size_pixels=36, flicker_probability=0.5, max_episode_frames=120)


@pytest.fixture
def flickering(envs_of):
    def make(**options):
        rules = {name: options.pop(name) for name in ("flicker_probability",) if name in options}
        return envs_of(**{"game": "catch", "env": replace(FLICKER, **rules), "num_envs": 2, **options})

    return make


def played(envs, steps: int = STEPS):
    return [copied(envs.reset()), *play(envs, random_actions(envs, steps))]


def obscured(steps) -> np.ndarray:
    """Return which frames are black; a frame of Catch always shows the ball."""
    return np.array([~step.frame.any(axis=(1, 2)) for step in steps])


def test_share_of_obscured_frames_is_the_probability(flickering):
    # 200 of 800 expected; 5 standard deviations of a binomial(800, 1/4) are 61
    found = obscured(played(flickering(flicker_probability=0.25, num_envs=8), 99)).sum()
    assert 139 <= found <= 261


def test_frames_that_are_shown_and_all_else_are_those_without_flicker(flickering):
    plain, flickered = (played(flickering(flicker_probability=p)) for p in (0.0, 0.5))
    for step, black, other in zip(flickered, obscured(flickered), plain, strict=True):
        other.frame[black] = 0
        assert as_bytes([step]) == as_bytes([other])


def test_each_environment_flickers_by_a_stream_of_its_own(flickering):
    first, second = obscured(played(flickering())).T
    assert 25 <= (first != second).sum() <= 76  # 50 of 101 expected; 5 standard deviations are 25


def test_first_frame_of_an_episode_may_be_obscured(flickering):
    steps = played(flickering(num_envs=8))
    first = np.array([step.first for step in steps])
    assert set(obscured(steps)[first].tolist()) == {False, True}


def test_training_and_evaluation_flicker_by_different_streams(flickering):
    training, evaluation = (obscured(played(flickering(stream=name))) for name in ("training", "evaluation"))
    assert not np.array_equal(training, evaluation)


def test_restored_environments_flicker_as_uninterrupted_ones(flickering):
    envs = flickering()
    played(envs, 20)
    state, actions = envs.state_dict(), random_actions(envs, 60)
    unbroken = play(envs, actions)
    restored = flickering()
    restored.load_state_dict(state)
    assert as_bytes(play(restored, actions)) == as_bytes(unbroken)


@pytest.mark.slow
def test_workers_flicker_as_one_process(flickering):
    assert as_bytes(played(flickering(workers=2))) == as_bytes(played(flickering()))


def test_state_without_flicker_is_that_of_earlier_versions(flickering):
    states = [flickering(flicker_probability=p).state_dict()["lanes"][0] for p in (0.0, 0.5)]
    assert states[1].keys() - states[0].keys() == {"flicker"}
    assert "flicker" not in states[0]


def test_each_episode_flickers_by_a_stream_of_its_own(flickering):
    steps = played(flickering(num_envs=1), 400)
    starts = [place for place, step in enumerate(steps) if step.first[0]]
    assert min(np.diff(starts)) >= 16
    patterns = {tuple(obscured(steps)[start : start + 16, 0]) for start in starts[:10]}
    assert len(patterns) == 10  # of 65,536 patterns
