from collections.abc import Iterator
from dataclasses import replace

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing
from playing import PLAIN, as_bytes, copied, play, random_actions

from atari_dqn.errors import UserError
from atari_dqn.types import Environments, StepBatch

gymnasium.register_envs(ale_py)

Row = tuple[np.ndarray, float, bool, bool]


def gymnasium_rows(game_id: str, actions: np.ndarray) -> Iterator[Row]:
    """Yield the steps of Gymnasium's preprocessing; a reset takes a step of its own."""
    base = gymnasium.make(
        game_id,
        frameskip=1,
        repeat_action_probability=0.0,
        full_action_space=False,
        max_num_frames_per_episode=0,
    )
    env = AtariPreprocessing(base, noop_max=0, frame_skip=4, screen_size=84, terminal_on_life_loss=False)
    ended = True
    for action in actions:
        if ended:
            frame, _ = env.reset()
            reward, terminated, truncated = 0.0, False, False
        else:
            frame, reward, terminated, truncated, _ = env.step(int(action))
        ended = terminated or truncated
        yield frame, float(reward), terminated, truncated
    env.close()


def our_rows(envs: Environments, actions: np.ndarray) -> Iterator[StepBatch]:
    for action in actions:
        envs.send(np.array([action]))
        yield copied(envs.recv())


@pytest.mark.parametrize(
    ("game", "game_id", "steps"),
    [
        ("breakout", "ALE/Breakout-v5", 300),
        pytest.param("breakout", "ALE/Breakout-v5", 2_000, marks=pytest.mark.slow),
        pytest.param("pong", "ALE/Pong-v5", 2_000, marks=pytest.mark.slow),
        pytest.param("space_invaders", "ALE/SpaceInvaders-v5", 2_000, marks=pytest.mark.slow),
        pytest.param("seaquest", "ALE/Seaquest-v5", 2_000, marks=pytest.mark.slow),
        pytest.param("qbert", "ALE/Qbert-v5", 2_000, marks=pytest.mark.slow),
    ],
)
def test_steps_equal_those_of_gymnasiums_preprocessing(envs_of, game, game_id, steps):
    envs = envs_of(game=game, env=PLAIN, num_envs=1)
    actions, games = random_actions(envs, steps)[:, 0], 0
    for ours, theirs in zip(our_rows(envs, actions), gymnasium_rows(game_id, actions), strict=True):
        frame, reward, terminated, truncated = theirs
        games += terminated
        assert (ours.reward[0], ours.terminated[0], ours.truncated[0]) == (reward, terminated, truncated)
        # where a game ends within a skip, Gymnasium pools a frame of the previous step
        assert terminated or np.array_equal(ours.frame[0], frame)
    assert games > 0


@pytest.fixture
def pong(envs_of):
    return lambda **env: envs_of(game="pong", env=replace(PLAIN, **env), num_envs=1)


def test_frame_is_the_maximum_of_the_last_two_screens(envs_of):
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path("pong"))
    ale.reset_game()
    envs = envs_of(game="pong", env=PLAIN, num_envs=1)
    envs.reset()
    actions = random_actions(envs, 100)
    for row, action in zip(play(envs, actions), actions[:, 0], strict=True):
        screens = []
        for _ in range(4):
            ale.act(ale.getMinimalActionSet()[action])
            screens.append(ale.getScreenGrayscale().copy())
        pooled = np.maximum(screens[2], screens[3])
        assert np.array_equal(row.frame[0], cv2.resize(pooled, (84, 84), interpolation=cv2.INTER_AREA))


def trajectory(envs: Environments, steps: int = 60) -> bytes:
    envs.reset()
    return as_bytes(play(envs, random_actions(envs, steps)))


@pytest.mark.slow
def test_trajectory_is_determined_by_the_seed(envs_of):
    env = replace(PLAIN, noop_max_frames=30, sticky_probability=0.25)
    one, again = (trajectory(envs_of(game="pong", env=env, num_envs=2, seed=7)) for _ in range(2))
    other = trajectory(envs_of(game="pong", env=env, num_envs=2, seed=8))
    assert one == again
    assert one != other


@pytest.mark.slow
def test_training_and_evaluation_streams_differ_under_one_seed(envs_of):
    env = replace(PLAIN, noop_max_frames=30)
    train, evaluation = (
        trajectory(envs_of(game="pong", env=env, num_envs=2, stream=stream)) for stream in ("train", "eval")
    )
    assert train != evaluation


def test_resize_key_changes_the_frames(pong):
    assert trajectory(pong(resize="area")) != trajectory(pong(resize="bilinear"))


@pytest.mark.parametrize(("full", "count"), [(False, 6), (True, 18)])
def test_action_set_is_minimal_or_full(pong, full, count):
    info = pong(full_action_set=full).info
    assert (info.num_actions, info.action_names[0]) == (count, "noop")


def test_info_names_game_frame_and_rom(pong):
    info = pong(screen_size_pixels=40).info
    assert (info.game, info.frame_shape) == ("pong", (40, 40))
    assert info.rom_md5 == "60e0ea3cbe0913d39803477945e9e5ec"


@pytest.mark.parametrize(
    ("game", "message"),
    [
        ("combat", "more than one player"),
        ("joust", "more than one player"),
        ("maze_craze", "more than one player"),
        ("warlords", "more than one player"),
        ("breakuot", 'did you mean "breakout"'),
        ("", "unknown game ''"),
    ],
)
def test_game_that_cannot_be_played_is_refused_before_loading(envs_of, game, message):
    with pytest.raises(UserError, match=message):
        envs_of(game=game, env=PLAIN, num_envs=1)


def test_lost_life_in_breakout_is_not_the_end_of_the_game(envs_of):
    envs = envs_of(game="breakout", env=PLAIN, num_envs=1)
    envs.reset()
    rows = play(envs, np.full((300, 1), 1))  # fire, and let the ball drop
    ending = next(index for index, row in enumerate(rows) if row.terminated[0])
    losses = [bool(row.terminated[0]) for row in rows[: ending + 1] if row.life_lost[0]]
    assert losses == [False, False, False, False, True]


def test_frame_skip_of_three_is_truncated_at_its_cap(pong):
    envs = pong(frame_skip=3, max_episode_frames=100)
    envs.reset()
    rows = play(envs, random_actions(envs, 36))
    assert [bool(row.truncated[0]) for row in rows] == [False] * 33 + [True, False, False]
    assert [bool(row.first[0]) for row in rows] == [False] * 34 + [True, False]


def episodes_of(envs: Environments, count: int) -> dict[int, bytes]:
    """Return the steps of the first `count` episodes, with actions by episode number and step."""
    rows: dict[int, list[StepBatch]] = {}
    current = list(range(envs.num_envs))
    batch = copied(envs.reset())
    while min(current) < count:
        for slot, number in enumerate(current):
            one = {name: getattr(batch, name)[slot : slot + 1] for name in StepBatch.__slots__}
            rows.setdefault(number, []).append(StepBatch(**one))
        for slot in np.flatnonzero(batch.ended):
            current[slot] += envs.num_envs
        steps = [len(rows.get(number, ())) for number in current]
        actions = [
            (5 * number + step * step) % envs.info.num_actions
            for number, step in zip(current, steps, strict=True)
        ]
        envs.send(np.array(actions))
        batch = copied(envs.recv())
    return {number: as_bytes(rows[number]) for number in range(count)}


@pytest.mark.slow
def test_power_on_episodes_do_not_depend_on_the_number_of_environments(envs_of):
    # without power_on_reset Assault depends on earlier episodes, as the test below shows
    env = replace(PLAIN, noop_max_frames=30, sticky_probability=0.25, max_episode_frames=600)
    alone, three = (
        episodes_of(envs_of(game="assault", env=env, num_envs=envs, power_on_reset=True), 6)
        for envs in (1, 3)
    )
    assert alone == three


@pytest.mark.slow
def test_reset_of_assault_depends_on_earlier_episodes_unless_it_is_a_power_on_reset(envs_of):
    env = replace(PLAIN, max_episode_frames=600)
    envs = envs_of(game="assault", env=env, num_envs=1)
    assert len(set(episodes_of_same_actions(envs))) > 1
    power_on = envs_of(game="assault", env=env, num_envs=1, power_on_reset=True)
    assert len(set(episodes_of_same_actions(power_on))) == 1


def episodes_of_same_actions(envs: Environments) -> list[bytes]:
    actions = random_actions(envs, 140)
    episodes = []
    for _ in range(3):
        envs.reset()
        episodes.append(as_bytes(play(envs, actions)))
    return episodes
