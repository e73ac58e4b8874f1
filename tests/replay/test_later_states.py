"""The stored states within sequences are those of the history, and exist where a sequence uses them."""

import numpy as np
import pytest
import torch
from histories import History
from hypothesis import given, settings
from hypothesis import strategies as st
from tapes import sample_at
from test_groups import EACH, grouped, sequences_on
from test_sequences_rebuilt import EVENTS, Shape, sequences

from atari_dqn.replay.later_states import LaterStates

SHAPES = [
    Shape(length=4, burn_in=2, period=2, n_step=1, stack=3, envs=1),
    Shape(length=5, burn_in=0, period=5, n_step=5, stack=2, envs=1),
    Shape(length=6, burn_in=1, period=2, n_step=4, stack=2, envs=3),
]


def later_states(shape: Shape, replay) -> LaterStates:
    return LaterStates(replay, replay.states, length=shape.length, burn_in=shape.burn_in, period=shape.period)


def check(history: History, shape: Shape, replay) -> int:
    """Check every state of every sequence; return how many exist."""
    expected, later, count = sequences(history, shape), later_states(shape, replay), 0
    if not expected:
        return 0
    states, exists = later.gather(sample_at(replay, 0).index)
    for number, (row, slot, episode) in enumerate(expected):
        for place, position in enumerate(later.positions):
            needed = row - episode.first + position + shape.burn_in + shape.length - shape.period
            found = exists[number, place].item()
            assert found == (row != episode.first and needed < episode.steps)
            if found:
                count += 1
                assert states[number, place].tolist() == history.states(row + position)[slot].tolist()
    return count


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_later_state_is_the_one_that_the_actor_had(shape: Shape, data) -> None:
    iterations = data.draw(st.lists(st.tuples(*[EVENTS] * shape.envs), min_size=30, max_size=60))
    replay = shape.replay()
    history = History(replay, shape.envs)
    for iteration, events in enumerate(iterations):
        history.play(events)
        if iteration % 4 == 0:
            check(history, shape, replay)


def test_states_of_a_group_exist_where_its_own_rows_have_them() -> None:
    # T = 4 steps, a burn-in of 2 and a period of 2: positions 0, 2 and 4 need the steps 4, 6 and 8
    replay = grouped(sequences_on)
    for count, group in zip((14, 9), replay.groups, strict=True):
        history = History(group, EACH)
        for _ in range(count):
            history.play(("plain", "plain"))
    later = LaterStates(replay, replay.groups[0].states, length=4, burn_in=2, period=2)
    assert later.positions == (0, 2, 4)
    index = torch.from_numpy(replay.ring.index_of(np.array([4, 4, 2]), np.array([0, 2, 3])))
    states, exists = later.gather(index)
    assert exists.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert states[0].tolist() == [[1.0, 4.0], [1.0, 6.0], [1.0, 8.0]]
    assert states[2, :2].tolist() == [[2.0, 2.0], [2.0, 4.0]]  # the second environment of its group


def test_states_exist_at_the_first_frame_after_the_burn_in_and_every_period_later() -> None:
    shape = Shape(length=4, burn_in=2, period=2, n_step=1, stack=1, envs=1, capacity=40)
    replay = shape.replay()
    history = History(replay, 1)
    for _ in range(40):
        history.play(("plain",))
    assert later_states(shape, replay).positions == (0, 2, 4)
    assert check(history, shape, replay) > 40
