from dataclasses import replace

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from playing import CATCH, PLAIN

from atari_dqn.envs.games import make_envs
from atari_dqn.envs.gymnasium_env import GymnasiumEnv, GymnasiumVectorEnv


def builder(num_envs, env=CATCH, game="catch"):
    return lambda seed: make_envs(game=game, env=env, num_envs=num_envs, seed=seed, stream="gym")


@pytest.mark.parametrize(
    ("game", "env"),
    [("catch", CATCH), pytest.param("pong", replace(PLAIN, noop_max_frames=30), marks=pytest.mark.slow)],
)
def test_environment_passes_gymnasiums_checker(game, env):
    slot = GymnasiumEnv(builder(1, env, game), stack_frames=4)
    check_env(slot, skip_render_check=True)
    slot.close()


@pytest.fixture
def vector():
    env = GymnasiumVectorEnv(builder(2, replace(CATCH, max_episode_frames=24)), stack_frames=4)
    yield env
    env.close()


@pytest.mark.parametrize(("ends_skip", "last_whole_step"), [(False, 24), (True, 23)])
def test_vector_environment_ends_a_step_at_a_lost_life_if_the_key_says_so(ends_skip, last_whole_step):
    # a ball comes down on frame 23, in the middle of the step of frames 21 to 24
    vector = GymnasiumVectorEnv(builder(1, replace(CATCH, life_loss_ends_skip=ends_skip)), stack_frames=1)
    vector.reset()
    for _ in range(5):
        vector.step(np.array([1]))
    _, _, _, _, info = vector.step(np.array([1]))
    played = vector._envs.state_dict()["lanes"][0]["episode_frames"]
    assert (played, bool(info["life_lost"][0])) == (last_whole_step, True)


def test_spaces_hold_what_reset_and_step_return(vector):
    observation, _ = vector.reset(seed=1)
    assert observation in vector.observation_space
    assert observation[0] in vector.single_observation_space
    observation, reward, terminated, truncated, info = vector.step(vector.action_space.sample())
    assert observation in vector.observation_space
    assert reward.shape == terminated.shape == truncated.shape == info["life_lost"].shape == (2,)


def test_autoreset_mode_is_next_step(vector):
    assert vector.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    vector.reset(seed=1)
    endings = [vector.step(np.zeros(2, int))[3].tolist() for _ in range(7)]
    assert endings == [[False, False]] * 5 + [[True, True], [False, False]]


def test_stack_is_zero_before_an_episodes_first_frame(vector):
    observation, _ = vector.reset(seed=1)
    assert [frame.any() for frame in observation[0]] == [False, False, False, True]
    observations = [vector.step(np.zeros(2, int))[0] for _ in range(7)]
    assert [frame.any() for frame in observations[1][0]] == [False, True, True, True]
    assert [frame.any() for frame in observations[6][0]] == [False, False, False, True]


def test_stack_moves_by_one_frame(vector):
    before, _ = vector.reset(seed=1)
    after = vector.step(np.zeros(2, int))[0]
    assert np.array_equal(after[:, :-1], before[:, 1:])


@pytest.mark.parametrize(("max_episode_frames", "ending"), [(24, "truncated"), (200, "terminated")])
def test_results_of_a_step_stay_when_the_next_one_is_taken(max_episode_frames, ending):
    rules = replace(CATCH, max_episode_frames=max_episode_frames)
    env = GymnasiumVectorEnv(builder(2, rules), stack_frames=4)
    env.reset(seed=1)
    names = ("observation", "reward", "terminated", "truncated")
    results, at_once = [], []
    for _ in range(20):
        *arrays, info = env.step(np.zeros(2, int))
        results.append(dict(zip(names, arrays, strict=True)) | info)
        at_once.append({name: array.tolist() for name, array in results[-1].items()})
    env.close()
    assert any(any(result[ending]) for result in at_once)
    assert [{name: array.tolist() for name, array in result.items()} for result in results] == at_once


def test_reset_with_a_seed_is_repeatable(vector):
    runs = []
    for seed in (5, 5, 6):
        observation, _ = vector.reset(seed=seed)
        runs.append(np.array([observation] + [vector.step(np.ones(2, int))[0] for _ in range(20)]).tobytes())
    assert runs[0] == runs[1] != runs[2]


def test_gymnasiums_statistics_wrapper_counts_whole_episodes(vector):
    counted = RecordEpisodeStatistics(vector)
    counted.reset(seed=1)
    infos = [counted.step(np.zeros(2, int))[4] for _ in range(13)]
    lengths = [info["episode"]["l"].tolist() for info in infos if "episode" in info]
    assert lengths == [[6, 6], [6, 6]]


def test_unknown_options_are_refused(vector):
    with pytest.raises(ValueError, match="reset_mask"):
        vector.reset(options={"reset_mask": np.ones(2, bool)})


def test_gymnasium_env_of_two_environments_is_refused():
    with pytest.raises(ValueError, match="expected one environment, got 2"):
        GymnasiumEnv(builder(2), stack_frames=4)


@pytest.mark.parametrize("action", [-1, 3, 1.9, True])
def test_action_that_there_is_not_is_refused(action):
    slot = GymnasiumEnv(builder(1), stack_frames=4)
    slot.reset()
    with pytest.raises(ValueError, match="expected 1 integers from 0 to 2"):
        slot.step(action)
    slot.close()


def test_step_after_the_end_of_an_episode_is_refused_until_the_next_reset():
    slot = GymnasiumEnv(builder(1, replace(CATCH, max_episode_frames=24)), stack_frames=4)
    slot.reset()
    assert [slot.step(0)[3] for _ in range(6)] == [False] * 5 + [True]
    for _ in range(2):
        with pytest.raises(ValueError, match="step after the end of an episode: call reset first"):
            slot.step(0)
    slot.reset()
    assert not slot.step(0)[3]
    slot.close()


@pytest.mark.parametrize("num_envs", [1, 2])
def test_closed_environments_take_neither_step_nor_reset(num_envs):
    vector = GymnasiumVectorEnv(builder(num_envs), stack_frames=4)
    vector.reset()
    vector.close()
    with pytest.raises(ValueError, match="step after close: make another environment"):
        vector.step(np.zeros(num_envs, int))
    with pytest.raises(ValueError, match="reset after close: make another environment"):
        vector.reset(seed=1)


def test_closed_environment_takes_neither_step_nor_reset():
    slot = GymnasiumEnv(builder(1), stack_frames=4)
    slot.reset()
    slot.close()
    slot.close()  # a second time has no effect
    with pytest.raises(ValueError, match="step after close: make another environment"):
        slot.step(0)
    with pytest.raises(ValueError, match="reset after close: make another environment"):
        slot.reset()


def test_step_before_the_first_reset_is_refused():
    slot = GymnasiumEnv(builder(1), stack_frames=4)
    with pytest.raises(ValueError, match="call reset first"):
        slot.step(0)
    slot.close()
