"""Every sequence of a replay equals the one that is rebuilt step by step from the complete history."""

import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch
from histories import BOUND, GAMMA, History
from hypothesis import given, settings
from hypothesis import strategies as st
from tapes import CPU, EveryTransition, prioritized, sample_at

from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sequences import (
    SequenceReplay,
    sequence_ring_rows,
    state_slots,
    states_used,
    states_written,
)
from atari_dqn.replay.states import StateTable
from atari_dqn.replay.uniform import UniformSampler

NOTHING = (0, 0, 0)
EVENTS = st.sampled_from(["plain"] * 9 + ["game over", "cap", "life"])


@dataclass(frozen=True)
class Shape:
    """The sizes of the sequences of a replay."""

    length: int
    burn_in: int
    period: int
    n_step: int
    stack: int
    envs: int
    capacity: int = 14

    @property
    def rows_before(self) -> int:
        return self.burn_in + max(self.stack - 1, 1)

    def replay(self, sampler=EveryTransition) -> SequenceReplay:
        rows = sequence_ring_rows(
            capacity_steps=self.capacity * self.envs, envs=self.envs, stack=self.stack, burn_in=self.burn_in,
            length=self.length,
        )  # fmt: skip
        slots = state_slots(rows=rows, period=self.period)
        return SequenceReplay(
            FrameRing(rows=rows, num_envs=self.envs, frame_shape=(1, 3), stack=self.stack, device=CPU),
            sampler(capacity=rows * self.envs, batch_size=32, seed=0, device=CPU),
            length=self.length, burn_in=self.burn_in, period=self.period, n_step=self.n_step, gamma=GAMMA,
            max_abs_reward=BOUND, state_width=2,
            states=StateTable(rows=rows, num_envs=self.envs, slots=slots, width=2, device=CPU),
        )  # fmt: skip


SHAPES = [
    Shape(length=4, burn_in=2, period=2, n_step=1, stack=3, envs=1),
    Shape(length=4, burn_in=2, period=2, n_step=3, stack=1, envs=3),
    Shape(length=5, burn_in=0, period=5, n_step=5, stack=2, envs=1),
    Shape(length=3, burn_in=2, period=3, n_step=2, stack=4, envs=2),
    Shape(length=1, burn_in=1, period=1, n_step=1, stack=1, envs=1),
    Shape(length=6, burn_in=1, period=2, n_step=4, stack=2, envs=3),
]


@dataclass(frozen=True)
class Episode:
    """The rows of an episode: its steps, and the last frame if it has ended or the newest if it has not."""

    first: int
    last: int
    steps: int


def episodes(rows) -> list[Episode]:
    starts = [number for number, row in enumerate(rows) if row.first] + [len(rows)]
    found = []
    for first, stop in pairwise(starts):
        steps = sum(rows[number].is_step for number in range(first, stop))
        found.append(Episode(first, stop - 1, steps))
    return found


def sequences(history: History, shape: Shape) -> list[tuple[int, int, Episode]]:
    """Return row, environment and episode of every sequence that can be sampled."""
    newest = len(history.envs[0]) - 1
    size = shape.capacity + shape.rows_before + shape.length
    oldest_whole = newest - size + 1 + shape.rows_before if newest >= size else 0
    found = []
    for slot, rows in enumerate(history.envs):
        for episode in episodes(rows):
            covered, start = 0, 0
            while covered < episode.steps:  # as long as it has a step that no earlier one has
                row = episode.first + start
                if oldest_whole <= row <= newest - shape.length:
                    found.append((row, slot, episode))
                covered, start = start + shape.length, start + shape.period
    return sorted(found, key=lambda each: each[:2])


def check_sequence(history: History, shape: Shape, found, number: int, row: int, slot: int, episode) -> None:
    rows, states = history.envs[slot], history.states
    is_first = row == episode.first
    earliest = row if is_first else row - shape.burn_in
    steps = min(shape.length, episode.first + episode.steps - row)
    assert found.is_first[number].item() == is_first
    assert found.mask[number].tolist() == [step < steps for step in range(shape.length)]

    in_episode = range(episode.first, episode.last + 1)
    frames = [
        rows[place].frame if place in in_episode and place <= row + steps else NOTHING
        for place in range(row - shape.burn_in - shape.stack + 1, row + shape.length + 1)
    ]
    assert [tuple(frame) for frame in found.frames[number, :, 0].tolist()] == frames
    for position in range(steps + 1):  # the stacks are those of an actor
        stack = found.frames[number, shape.burn_in + position :][: shape.stack, 0]
        assert [tuple(frame) for frame in stack.tolist()] == history.stack(slot, row + position, shape.stack)

    for place in range(earliest, row + steps + 1):
        position = place - row + shape.burn_in
        before = None if place == episode.first else rows[place - 1]
        assert found.last_action[number, position].item() == (-1 if before is None else before.action)
        reward = 0.0 if before is None else min(max(before.reward, -BOUND), BOUND)
        assert found.last_reward[number, position].item() == reward

    expected = [0.0, 0.0] if is_first else states(earliest)[slot].tolist()
    assert found.state[number].tolist() == expected
    for step in range(steps):
        check_step(rows, shape, found, number, row, step, steps)


def check_step(rows, shape: Shape, found, number: int, row: int, step: int, steps: int) -> None:
    value, factor, end = 0.0, 1.0, step
    while end < min(step + shape.n_step, steps):
        one = rows[row + end]
        value += factor * min(max(one.reward, -BOUND), BOUND)
        factor *= GAMMA * one.discount
        end += 1
    assert found.a_tm1[number, step].item() == rows[row + step].action
    assert found.r_t[number, step].item() == pytest.approx(value, abs=1e-5)
    assert found.discount_t[number, step].item() == pytest.approx(factor, abs=1e-6)
    assert found.end_t[number, step].item() == end


def check_all(history: History, shape: Shape, replay: SequenceReplay) -> int:
    expected = sequences(history, shape)
    assert replay.num_transitions == len(expected)
    if expected:
        found = sample_at(replay, 0)
        places = [row % replay.ring.rows * shape.envs + slot for row, slot, _ in expected]
        assert found.index.tolist() == places
        for number, one in enumerate(expected):
            check_sequence(history, shape, found, number, *one)
    return len(expected)


@pytest.mark.fault("W07", "W10")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_sequence_equals_the_one_rebuilt_from_history(shape: Shape, data) -> None:
    iterations = data.draw(st.lists(st.tuples(*[EVENTS] * shape.envs), min_size=30, max_size=80))
    replay = shape.replay()
    history = History(replay, shape.envs)
    for iteration, events in enumerate(iterations):
        history.play(events)
        replay.check()
        if iteration % 4 == 0:
            check_all(history, shape, replay)
    assert check_all(history, shape, replay)


@pytest.mark.fault("W03")
@pytest.mark.parametrize(
    "shape",
    [SHAPES[1], *(pytest.param(shape, marks=pytest.mark.slow) for shape in (SHAPES[0], SHAPES[2]))],
    ids=str,
)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(data=st.data())
def test_loaded_replay_goes_on_as_the_saved_one_would(shape: Shape, data) -> None:
    iterations = data.draw(st.lists(st.tuples(*[EVENTS] * shape.envs), min_size=40, max_size=70))
    first = data.draw(st.integers(0, len(iterations) - 10))
    history = History(shape.replay(), shape.envs)
    for number, events in enumerate(iterations):
        if number == first:
            loaded = shape.replay()
            loaded.load_state_dict(copy.deepcopy(history.buffer.state_dict()))
            history.buffer = loaded
            loaded.check()
        history.play(events)
        check_all(history, shape, history.buffer)


@pytest.mark.parametrize("sampler", [UniformSampler, prioritized])
@settings(max_examples=5, deadline=None, derandomize=True)
@given(data=st.data())
def test_only_whole_sequences_are_drawn_whatever_the_episodes(sampler, data) -> None:
    shape = SHAPES[1]
    iterations = data.draw(st.lists(st.tuples(*[EVENTS] * shape.envs), min_size=20, max_size=60))
    replay = shape.replay(sampler)
    history = History(replay, shape.envs)
    for iteration, events in enumerate(iterations):
        history.play(events)
        replay.check()
        expected = sequences(history, shape)
        if expected:
            found = sample_at(replay, 0)
            assert set(found.index.tolist()) <= {
                row % replay.ring.rows * shape.envs + slot for row, slot, _ in expected
            }
            replay.update_priorities(found, torch.arange(32) % 7 * 0.3 + iteration)


def test_short_episodes_take_no_slots_of_the_states_of_a_long_one() -> None:
    shape = Shape(length=3, burn_in=3, period=3, n_step=1, stack=1, envs=1, capacity=90)
    replay = shape.replay()
    history = History(replay, shape.envs)
    events = ["plain"] * 24 + [
        "game over",
        "plain",
    ] * 34  # 34 episodes of one step, whose only state is unused
    for number, event in enumerate(events):
        history.play((event,))
        if number > 60:
            check_all(history, shape, replay)


def test_states_of_the_documented_example_are_counted() -> None:
    # T = 4 steps, a burn-in of 2 and a period of 2: burn-ins begin at steps 0, 2, 4 and 6 of an episode
    steps = np.array([1, 2, 3, 4, 5, 6, 7])
    assert states_written(steps, burn_in=2, period=2).tolist() == [1, 1, 2, 2, 3, 3, 4]
    assert states_used(steps, length=4, period=2).tolist() == [0, 0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("burn_in", [0, 1, 2])
def test_episode_without_a_step_has_written_no_state(burn_in: int) -> None:
    assert states_written(np.array([0]), burn_in=burn_in, period=2).tolist() == [0]
