import numpy as np
import pytest
from playing import CATCH, play

from atari_dqn.envs.catch import CatchEmulator
from atari_dqn.errors import UserError


def follow(emulator: CatchEmulator) -> int:
    offset = emulator.state_dict()["column"] - emulator.state_dict()["paddle"]
    return 0 if offset == 0 else 1 if offset > 0 else 2


def test_following_the_ball_catches_all_ten_balls():
    emulator = CatchEmulator(84)
    emulator.reset(3)
    rewards = []
    while not emulator.game_over():
        rewards.append(emulator.act(follow(emulator)))
    assert (sum(rewards), len(rewards), emulator.lives()) == (10.0, 230, 3)


def test_frame_skip_of_4_still_catches_all_ten_balls():
    emulator = CatchEmulator(84)
    emulator.reset(3)
    total, frame = 0.0, 0
    while not emulator.game_over():
        action = follow(emulator) if frame % 4 == 0 else action
        total += emulator.act(action)
        frame += 1
    assert total == 10.0


def test_third_missed_ball_ends_the_game(envs_of):
    envs = envs_of(game="catch", env=CATCH, num_envs=1)
    envs.reset()
    rows = play(envs, [np.array([2])] * 80)
    ending = next(index for index, row in enumerate(rows) if row.terminated[0])
    losses = [index for index, row in enumerate(rows[: ending + 1]) if row.reward[0] < 0]
    assert [index for index, row in enumerate(rows[: ending + 1]) if row.life_lost[0]] == losses
    assert (len(losses), losses[-1]) == (3, ending)
    assert rows[ending + 1].first[0]


def test_frame_shows_a_ball_above_and_the_paddle_below():
    emulator = CatchEmulator(48)
    emulator.reset(0)
    screen = np.zeros((48, 48), np.uint8)
    emulator.write_screen(screen)
    assert (screen[0] > 0).sum() == 2
    assert np.flatnonzero(screen[-1]).tolist() == list(range(20, 30))


def test_unknown_game_of_catch_is_refused(envs_of):
    with pytest.raises(UserError, match="expected game = 'catch'"):
        envs_of(game="pong", env=CATCH, num_envs=1)
