from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from playing import STREAMS, ScriptedEnvironment, ScriptedGame, frames_shown


def begun(game: ScriptedGame, **rules) -> ScriptedEnvironment:
    env = ScriptedEnvironment(game, **rules)
    env.step(0)
    return env


def test_first_observation_is_the_screen_after_the_reset():
    env = begun(ScriptedGame())
    assert (frames_shown(env), env.reward, env.first) == ([0], 0.0, True)


@pytest.mark.fault("D05")
def test_step_pools_its_last_two_frames():
    env = begun(ScriptedGame())
    env.step(0)
    assert frames_shown(env) == [3, 4]
    env.step(0)
    assert frames_shown(env) == [7, 8]


@pytest.mark.fault("D05")
@pytest.mark.parametrize(
    ("last_frame", "shown", "reward"),
    [(5, [5], 1e5), (6, [6], 1.1e6), (7, [7], 1.11e7), (8, [7, 8], 1.111e8)],
)
def test_game_over_within_a_skip_shows_no_frame_of_the_step_before(last_frame, shown, reward):
    env = begun(ScriptedGame(last_frame=last_frame))
    env.step(0)
    env.step(0)
    assert (frames_shown(env), env.reward, env.terminated, env.truncated) == (shown, reward, True, False)


def test_skip_of_one_frame_shows_that_frame():
    env = begun(ScriptedGame(), frame_skip=1)
    env.step(0)
    assert frames_shown(env) == [1]


@pytest.mark.fault("D07")
def test_skip_of_three_plays_three_frames_a_step():
    env = begun(ScriptedGame(), frame_skip=3)
    env.step(0)
    env.step(0)
    assert (frames_shown(env), env.reward) == ([5, 6], 1.11e6)


@pytest.mark.parametrize(
    ("frame_skip", "cap", "steps", "shown"), [(4, 8, 2, [7, 8]), (4, 9, 3, [9]), (3, 8, 3, [7, 8])]
)
def test_episode_is_truncated_at_exactly_its_maximum_length(frame_skip, cap, steps, shown):
    env = begun(ScriptedGame(), frame_skip=frame_skip, max_episode_frames=cap)
    endings = []
    for _ in range(steps):
        env.step(0)
        endings.append(env.truncated)
    assert endings == [False] * (steps - 1) + [True]
    assert (frames_shown(env), env.terminated) == (shown, False)


def test_game_over_on_the_capped_frame_is_termination():
    env = begun(ScriptedGame(last_frame=8), max_episode_frames=8)
    env.step(0)
    env.step(0)
    assert (env.terminated, env.truncated) == (True, False)


def test_noop_frames_count_towards_the_cap():
    game = ScriptedGame()
    env = begun(game, noop_max_frames=1, max_episode_frames=9)
    env.step(0)
    env.step(0)
    assert (game.frame, env.truncated) == (9, True)


def test_noop_frames_leave_at_least_one_frame_of_the_episode():
    env = begun(ScriptedGame(), noop_max_frames=30, max_episode_frames=1)
    assert (frames_shown(env), env.first) == ([0], True)
    env.step(0)
    assert (frames_shown(env), env.truncated) == ([1], True)


def test_step_after_the_end_of_an_episode_resets_and_ignores_its_action():
    game = ScriptedGame(last_frame=2)
    env = begun(game)
    env.step(5)
    env.step(5)
    assert (frames_shown(env), env.first, env.reward, env.terminated) == ([0], True, 0.0, False)
    assert (game.played, game.resets) == ([5, 5], 2)


def test_lost_life_is_reported_and_the_game_continues():
    env = begun(ScriptedGame(lives_by_frame=(3, 3, 2, 2, 2, 2, 2, 2, 2)))
    env.step(0)
    assert (env.life_lost, env.terminated) == (True, False)
    env.step(0)
    assert (env.life_lost, env.first) == (False, False)


# a life is lost on a frame of the second step, 5 to 8:   a a a a | b ♥ …
@pytest.mark.parametrize(
    ("lost_at", "shown", "reward"),
    [(5, [5], 1e5), (6, [6], 1.1e6), (7, [7], 1.11e7), (8, [7, 8], 1.111e8)],
)
def test_life_loss_ends_skip_ends_the_step_at_the_frame_of_a_lost_life(lost_at, shown, reward):
    env = begun(ScriptedGame(lives_by_frame=(3,) * lost_at + (2,)), life_loss_ends_skip=True)
    env.step(0)
    env.step(0)
    assert (frames_shown(env), env.reward, env.life_lost, env.terminated) == (shown, reward, True, False)


def test_step_after_one_ended_by_a_lost_life_has_all_frames():
    game = ScriptedGame(lives_by_frame=(3, 3, 2))
    env = begun(game, life_loss_ends_skip=True)
    env.step(1)
    env.step(2)
    assert (game.played, frames_shown(env), env.life_lost) == ([1, 1, 2, 2, 2, 2], [5, 6], False)


def test_action_is_repeated_after_a_lost_life_by_default():
    env = begun(ScriptedGame(lives_by_frame=(3, 3, 2)))
    env.step(0)
    assert (frames_shown(env), env.life_lost) == ([3, 4], True)


def test_frames_skipped_by_a_lost_life_do_not_count_towards_the_cap():
    env = begun(ScriptedGame(lives_by_frame=(3, 3, 2)), life_loss_ends_skip=True, max_episode_frames=8)
    env.step(0)
    env.step(0)
    assert env.truncated is False
    env.step(0)
    assert (frames_shown(env), env.truncated) == ([7, 8], True)


def test_end_of_the_game_is_also_a_lost_life():
    env = begun(ScriptedGame(last_frame=2, lives_by_frame=(1, 1, 0)))
    env.step(0)
    assert (env.life_lost, env.terminated) == (True, True)


def test_lives_of_a_new_episode_are_not_a_lost_life():
    env = begun(ScriptedGame(last_frame=2, lives_by_frame=(3, 4, 4)))
    env.step(0)
    env.step(0)
    env.step(0)
    assert (env.first, env.life_lost) == (False, False)


def noops_of(env: ScriptedEnvironment, episodes: int) -> list[int]:
    shown = []
    for _ in range(episodes):
        env.reset()
        shown += frames_shown(env)
    return shown


def test_noop_starts_are_uniform_from_one_to_the_maximum():
    counts = Counter(noops_of(ScriptedEnvironment(ScriptedGame(), noop_max_frames=5), 1_000))
    # 200 each expected; 5 standard deviations of a binomial(1000, 1/5) are 63
    assert sorted(counts) == [1, 2, 3, 4, 5]
    assert all(137 <= count <= 263 for count in counts.values())


def test_no_noop_frames_if_their_maximum_is_zero():
    assert set(noops_of(ScriptedEnvironment(ScriptedGame(), noop_max_frames=0), 20)) == {0}


def test_noop_frames_play_only_the_noop():
    game = ScriptedGame()
    noops_of(ScriptedEnvironment(game, noop_max_frames=5), 20)
    assert set(game.played) == {0}


def test_game_over_during_noop_frames_samples_their_number_again():
    shown = noops_of(ScriptedEnvironment(ScriptedGame(last_frame=3), noop_max_frames=5), 200)
    assert set(shown) == {1, 2}


def test_sticky_action_repeats_the_executed_action_with_its_probability():
    game = ScriptedGame(last_frame=100_000)
    env = begun(game, sticky_probability=0.25)
    for step in range(10_000):
        env.step(step % 2)
    played = np.array(game.played).reshape(10_000, 4)
    wanted = np.arange(10_000) % 2
    # the first frame of a step repeats the step before's last executed action with probability 1/4, and that
    # is the new action again with probability 4**-4; 5 standard deviations of the count are 217
    repeated = int((played[:, 0] != wanted).sum())
    assert abs(repeated - 2_500 * (1 - 4**-4)) < 217
    # executed differs on all four frames with probability 1/256 (39 of 10,000; 5 standard deviations are 31)
    stuck = int((played != wanted[:, None]).all(axis=1).sum())
    assert 8 <= stuck <= 70


def test_first_frame_of_an_episode_repeats_the_noop_with_the_sticky_probability():
    game = ScriptedGame(last_frame=1)
    env = ScriptedEnvironment(game, sticky_probability=0.5)
    for _ in range(400):
        env.step(7)
    # 200 episodes of one frame; 5 standard deviations are 35
    assert game.played.count(0) + game.played.count(7) == 200
    assert 65 <= game.played.count(0) <= 135


def test_without_sticky_actions_no_random_number_is_used():
    env = begun(ScriptedGame())
    before = env.state_dict()["sticky"]
    env.step(1)
    assert env.state_dict()["sticky"] == before


def test_restored_environment_executes_the_same_sticky_actions():
    game, other_game = ScriptedGame(), ScriptedGame()
    env, other = (begun(each, sticky_probability=0.5) for each in (game, other_game))
    for step in range(7):
        env.step(1 + step % 3)
    other.load_state_dict(env.state_dict())
    game.played.clear()
    other_game.played.clear()
    for step in range(100):
        env.step(1 + step % 3)
        other.step(1 + step % 3)
    assert game.played == other_game.played


def test_life_lost_in_the_first_step_of_a_restored_environment_is_reported():
    game, other = (ScriptedGame(lives_by_frame=(3,) * 5 + (2,)) for _ in range(2))
    saved, restored = begun(game), ScriptedEnvironment(other)
    saved.step(0)
    restored.load_state_dict(saved.state_dict())
    restored.step(0)
    assert restored.life_lost


def test_noop_frames_of_an_episode_do_not_depend_on_the_number_of_environments():
    alone = ScriptedEnvironment(ScriptedGame(), noop_max_frames=30)
    of_three = [
        ScriptedEnvironment(ScriptedGame(), replace(STREAMS, slot=slot, num_envs=3), noop_max_frames=30)
        for slot in range(3)
    ]
    # one environment plays episodes 0, 1, 2, 3, …; three play 0, 3, … and 1, 4, … and 2, 5, …
    by_rounds = [noops for _ in range(4) for env in of_three for noops in noops_of(env, 1)]
    assert by_rounds == noops_of(alone, 12)
