from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from playing import STREAMS, ScriptedEnvironment, ScriptedGame, frames_shown


def begun(game: ScriptedGame, **rules) -> ScriptedEnvironment:
    slot = ScriptedEnvironment(game, **rules)
    slot.step(0)
    return slot


def test_first_row_is_the_reset_screen_alone():
    slot = begun(ScriptedGame())
    assert (frames_shown(slot), slot.reward, slot.first) == ([0], 0.0, True)


def test_step_pools_its_last_two_frames():
    slot = begun(ScriptedGame())
    slot.step(0)
    assert frames_shown(slot) == [3, 4]
    slot.step(0)
    assert frames_shown(slot) == [7, 8]


@pytest.mark.parametrize(
    ("last_frame", "shown", "reward"),
    [(5, [5], 1e5), (6, [6], 1.1e6), (7, [7], 1.11e7), (8, [7, 8], 1.111e8)],
)
def test_D05_game_over_within_a_skip_shows_no_frame_of_the_step_before(last_frame, shown, reward):
    slot = begun(ScriptedGame(last_frame=last_frame))
    slot.step(0)
    slot.step(0)
    assert (frames_shown(slot), slot.reward, slot.terminated, slot.truncated) == (shown, reward, True, False)


def test_skip_of_one_frame_shows_that_frame():
    slot = begun(ScriptedGame(), frame_skip=1)
    slot.step(0)
    assert frames_shown(slot) == [1]


def test_D07_skip_of_three_plays_three_frames_a_step():
    slot = begun(ScriptedGame(), frame_skip=3)
    slot.step(0)
    slot.step(0)
    assert (frames_shown(slot), slot.reward) == ([5, 6], 1.11e6)


@pytest.mark.parametrize(
    ("frame_skip", "cap", "steps", "shown"), [(4, 8, 2, [7, 8]), (4, 9, 3, [9]), (3, 8, 3, [7, 8])]
)
def test_cap_cuts_the_episode_at_exactly_its_frame(frame_skip, cap, steps, shown):
    slot = begun(ScriptedGame(), frame_skip=frame_skip, max_episode_frames=cap)
    endings = []
    for _ in range(steps):
        slot.step(0)
        endings.append(slot.truncated)
    assert endings == [False] * (steps - 1) + [True]
    assert (frames_shown(slot), slot.terminated) == (shown, False)


def test_game_over_on_the_capped_frame_is_termination():
    slot = begun(ScriptedGame(last_frame=8), max_episode_frames=8)
    slot.step(0)
    slot.step(0)
    assert (slot.terminated, slot.truncated) == (True, False)


def test_noop_frames_count_towards_the_cap():
    game = ScriptedGame()
    slot = begun(game, noop_max_frames=1, max_episode_frames=9)
    slot.step(0)
    slot.step(0)
    assert (game.frame, slot.truncated) == (9, True)


def test_noops_leave_the_episode_a_frame_of_its_own():
    slot = begun(ScriptedGame(), noop_max_frames=30, max_episode_frames=1)
    assert (frames_shown(slot), slot.first) == ([0], True)
    slot.step(0)
    assert (frames_shown(slot), slot.truncated) == ([1], True)


def test_row_after_an_ending_is_the_next_episodes_first_and_plays_no_action():
    game = ScriptedGame(last_frame=2)
    slot = begun(game)
    slot.step(5)
    slot.step(5)
    assert (frames_shown(slot), slot.first, slot.reward, slot.terminated) == ([0], True, 0.0, False)
    assert (game.played, game.resets) == ([5, 5], 2)


def test_lost_life_is_told_and_the_game_goes_on():
    slot = begun(ScriptedGame(lives_by_frame=(3, 3, 2, 2, 2, 2, 2, 2, 2)))
    slot.step(0)
    assert (slot.life_lost, slot.terminated) == (True, False)
    slot.step(0)
    assert (slot.life_lost, slot.first) == (False, False)


# a life is lost on a frame of the second step, 5 to 8:   a a a a | b ♥ …
@pytest.mark.parametrize(
    ("lost_at", "shown", "reward"),
    [(5, [5], 1e5), (6, [6], 1.1e6), (7, [7], 1.11e7), (8, [7, 8], 1.111e8)],
)
def test_step_ends_at_the_frame_of_a_lost_life_if_the_rules_say_so(lost_at, shown, reward):
    slot = begun(ScriptedGame(lives_by_frame=(3,) * lost_at + (2,)), life_loss_ends_skip=True)
    slot.step(0)
    slot.step(0)
    assert (frames_shown(slot), slot.reward, slot.life_lost, slot.terminated) == (shown, reward, True, False)


def test_step_after_one_that_a_lost_life_ended_is_whole():
    game = ScriptedGame(lives_by_frame=(3, 3, 2))
    slot = begun(game, life_loss_ends_skip=True)
    slot.step(1)
    slot.step(2)
    assert (game.played, frames_shown(slot), slot.life_lost) == ([1, 1, 2, 2, 2, 2], [5, 6], False)


def test_action_is_held_over_a_lost_life_unless_the_rules_say_otherwise():
    slot = begun(ScriptedGame(lives_by_frame=(3, 3, 2)))
    slot.step(0)
    assert (frames_shown(slot), slot.life_lost) == ([3, 4], True)


def test_frames_that_a_lost_life_leaves_out_do_not_count_towards_the_cap():
    slot = begun(ScriptedGame(lives_by_frame=(3, 3, 2)), life_loss_ends_skip=True, max_episode_frames=8)
    slot.step(0)
    slot.step(0)
    assert slot.truncated is False
    slot.step(0)
    assert (frames_shown(slot), slot.truncated) == ([7, 8], True)


def test_last_life_is_a_lost_life_too():
    slot = begun(ScriptedGame(last_frame=2, lives_by_frame=(1, 1, 0)))
    slot.step(0)
    assert (slot.life_lost, slot.terminated) == (True, True)


def test_new_episodes_lives_are_no_loss():
    slot = begun(ScriptedGame(last_frame=2, lives_by_frame=(3, 4, 4)))
    slot.step(0)
    slot.step(0)
    slot.step(0)
    assert (slot.first, slot.life_lost) == (False, False)


def noops_of(slot: ScriptedEnvironment, episodes: int) -> list[int]:
    shown = []
    for _ in range(episodes):
        slot.reset()
        shown += frames_shown(slot)
    return shown


def test_noop_starts_are_uniform_from_one_to_the_maximum():
    counts = Counter(noops_of(ScriptedEnvironment(ScriptedGame(), noop_max_frames=5), 1_000))
    # 200 each expected; 5 standard deviations of a binomial(1000, 1/5) are 63
    assert sorted(counts) == [1, 2, 3, 4, 5]
    assert all(137 <= count <= 263 for count in counts.values())


def test_no_noops_where_their_maximum_is_zero():
    assert set(noops_of(ScriptedEnvironment(ScriptedGame(), noop_max_frames=0), 20)) == {0}


def test_noop_frames_play_only_the_noop():
    game = ScriptedGame()
    noops_of(ScriptedEnvironment(game, noop_max_frames=5), 20)
    assert set(game.played) == {0}


def test_game_over_during_noops_resets_again_and_draws_again():
    shown = noops_of(ScriptedEnvironment(ScriptedGame(last_frame=3), noop_max_frames=5), 200)
    assert set(shown) == {1, 2}


def test_stickiness_repeats_the_executed_action_at_its_rate():
    game = ScriptedGame(last_frame=100_000)
    slot = begun(game, sticky_probability=0.25)
    for step in range(10_000):
        slot.step(step % 2)
    played = np.array(game.played).reshape(10_000, 4)
    wanted = np.arange(10_000) % 2
    # the first frame of a step repeats the step before's last executed action with probability 1/4, and that
    # is the new action again with probability 4**-4; 5 standard deviations of the count are 217
    repeated = int((played[:, 0] != wanted).sum())
    assert abs(repeated - 2_500 * (1 - 4**-4)) < 217
    # executed differs on all four frames with probability 1/256 (39 of 10,000; 5 standard deviations are 31)
    stuck = int((played != wanted[:, None]).all(axis=1).sum())
    assert 8 <= stuck <= 70


def test_first_frame_of_an_episode_repeats_the_noop_at_the_sticky_rate():
    game = ScriptedGame(last_frame=1)
    slot = ScriptedEnvironment(game, sticky_probability=0.5)
    for _ in range(400):
        slot.step(7)
    # 200 episodes of one frame; 5 standard deviations are 35
    assert game.played.count(0) + game.played.count(7) == 200
    assert 65 <= game.played.count(0) <= 135


def test_without_stickiness_nothing_is_drawn():
    slot = begun(ScriptedGame())
    before = slot.state_dict()["sticky"]
    slot.step(1)
    assert slot.state_dict()["sticky"] == before


def test_sticky_slot_restored_elsewhere_executes_the_same_actions():
    game, other_game = ScriptedGame(), ScriptedGame()
    slot, other = (begun(each, sticky_probability=0.5) for each in (game, other_game))
    for step in range(7):
        slot.step(1 + step % 3)
    other.load_state_dict(slot.state_dict())
    game.played.clear()
    other_game.played.clear()
    for step in range(100):
        slot.step(1 + step % 3)
        other.step(1 + step % 3)
    assert game.played == other_game.played


def test_episode_draws_do_not_depend_on_the_number_of_envs():
    alone = ScriptedEnvironment(ScriptedGame(), noop_max_frames=30)
    of_three = [
        ScriptedEnvironment(ScriptedGame(), replace(STREAMS, slot=slot, num_envs=3), noop_max_frames=30)
        for slot in range(3)
    ]
    # an environment of one plays episodes 0, 1, 2, 3, …; three environments play 0, 3, … and 1, 4, … and 2,
    # 5, …
    by_rounds = [noops for _ in range(4) for slot in of_three for noops in noops_of(slot, 1)]
    assert by_rounds == noops_of(alone, 12)
