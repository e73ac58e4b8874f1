"""Recall: the best score with memory and without, and how the game goes."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from playing import PLAIN, STREAMS

from atari_dqn.envs.buffers import new_batch
from atari_dqn.envs.recall import ACTION_NAMES, TRIALS, RecallEmulator
from atari_dqn.envs.shard import Shard
from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.errors import UserError
from atari_dqn.types import GameInfo

RECALL = replace(PLAIN, kind="recall", screen_size_pixels=36)
RIGHT, LEFT = 1, 2
Sides = tuple[int, ...]


class GivenSides(RecallEmulator):
    """The game with given sides of its lights."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        super().__init__(36)

    def side(self, trial: int) -> int:
        return self.sides[trial]


def game_of(sides: Sides, action: int, *, stack: int) -> Iterator[tuple[bytes, float]]:
    """Yield the observation before each step of a game in which every action is `action`, and its reward."""
    info = GameInfo(game="recall", action_names=ACTION_NAMES, frame_shape=(36, 36), rom_md5="")
    shard, step = Shard([GivenSides(sides)], [STREAMS], RECALL, info), new_batch(1, (36, 36))
    stacker = FrameStacker(envs=1, stack=stack, frame_shape=(36, 36))
    shard.reset(step)
    while not step.terminated[0]:
        observation = stacker.push(step).tobytes()
        shard.step(np.array([action]), step)
        yield observation, float(step.reward[0])


def best_score_without_memory(stack: int) -> float:
    """Compute the expected score of the best policy that is a function of the observation.

    Actions change no observation, so that the games of constant actions show the reward of every action in
    every observation. All sequences of sides are equally probable.
    """
    rewards: defaultdict[bytes, np.ndarray] = defaultdict(lambda: np.zeros(len(ACTION_NAMES)))
    every = list(product((RIGHT, LEFT), repeat=TRIALS))
    for sides, action in product(every, range(len(ACTION_NAMES))):
        for observation, reward in game_of(sides, action, stack=stack):
            rewards[observation][action] += reward
    return float(sum(of_action.max() for of_action in rewards.values())) / len(every)


@pytest.mark.parametrize("stack", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_best_policy_without_memory_scores_0(stack: int):
    assert best_score_without_memory(stack) == 0.0


@pytest.mark.slow
def test_stack_that_reaches_back_to_the_light_scores_more_than_0():
    assert best_score_without_memory(12) > 0.0


def test_actions_change_no_observation():
    sides = (RIGHT, LEFT, LEFT, RIGHT, LEFT)
    first, *others = ([seen for seen, _ in game_of(sides, action, stack=4)] for action in range(3))
    assert all(other == first for other in others)


def score_with_memory(envs) -> float:
    """Play a game by the side of the last light that a frame showed."""
    step, score, light = envs.reset(), 0.0, 0
    while not step.terminated[0]:
        frame = step.frame[0]
        if frame[0].any():  # a bar does not reach the first row
            light = RIGHT if frame[0, -1] else LEFT
        envs.send(np.array([light]))
        step = envs.recv()
        score += float(step.reward[0])
    return score


@pytest.mark.parametrize("rules", [{}, {"noop_max_frames": 30}, {"frame_skip": 1}, {"frame_skip": 8}])
def test_remembering_the_last_light_scores_5(envs_of, rules):
    assert score_with_memory(envs_of(game="recall", env=replace(RECALL, **rules), num_envs=1)) == 5.0


@pytest.mark.parametrize(("action", "score"), [(0, -5.0), (RIGHT, 1.0), (LEFT, -1.0)])
def test_each_answer_is_worth_1_if_it_is_the_side_and_else_minus_1(action: int, score: float):
    sides = (RIGHT, LEFT, RIGHT, LEFT, RIGHT)
    assert sum(reward for _, reward in game_of(sides, action, stack=1)) == score


def test_both_sides_are_equally_probable():
    emulator, sides = RecallEmulator(36), []
    for seed in range(400):
        emulator.reset(seed)
        sides += [emulator.side(trial) for trial in range(TRIALS)]
    # 1,000 of 2,000 expected; 5 standard deviations are 112
    assert set(sides) == {RIGHT, LEFT}
    assert 888 <= sides.count(RIGHT) <= 1_112


def screen_after(frames: int) -> np.ndarray:
    emulator, screen = GivenSides((RIGHT,) * TRIALS), np.zeros((36, 36), np.uint8)
    for _ in range(frames):
        emulator.act(0)
    emulator.write_screen(screen)
    return screen


@pytest.mark.parametrize(("first", "last", "share"), [(0, 31, 0), (32, 43, 18), (44, 83, 0), (84, 91, 6)])
def test_screen_is_dark_then_lit_then_dark_then_has_a_bar(first: int, last: int, share: int):
    # share: of the 36 columns or rows that are white
    assert [int((screen_after(frame) > 0).sum()) for frame in (first, last)] == [36 * share] * 2


def test_state_that_no_game_reaches_is_refused():
    with pytest.raises(ValueError, match="frame: found 333, expected 0 to 332"):
        RecallEmulator(36).load_state_dict({"game_seed": 1, "frame": 333})


def test_unknown_game_of_recall_is_refused(envs_of):
    with pytest.raises(UserError, match="expected game = 'recall'"):
        envs_of(game="catch", env=RECALL, num_envs=1)
