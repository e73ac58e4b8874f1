"""The steps that follow a transition equal those that are rebuilt step by step from the complete history."""

import pytest
import torch
from histories import BOUND, EVENTS, GAMMA, STACK, History
from hypothesis import given, settings
from hypothesis import strategies as st
from tapes import CPU, EveryTransition, sample_at

from atari_dqn.replay.buffer import ring_rows
from atari_dqn.replay.futures import FutureReplay
from atari_dqn.replay.ring import FrameRing
from atari_dqn.schedule import Horizon

CAPACITY = 8


def make_replay(*, envs: int, steps: int, n_step: int) -> FutureReplay:
    rows = ring_rows(capacity_steps=CAPACITY * envs, envs=envs, stack=STACK, n_step=max(steps, n_step))
    return FutureReplay(
        FrameRing(rows=rows, num_envs=envs, frame_shape=(1, 3), stack=STACK, device=CPU),
        EveryTransition(capacity=rows * envs, batch_size=32, seed=0, device=CPU),
        steps=steps, n_step=n_step, gamma=GAMMA, max_abs_reward=BOUND,
    )  # fmt: skip


def future_of(history: History, slot: int, row: int, steps: int):
    """Return for each later step whether the episode goes on, its action and the stack after it."""
    rows, goes_on, found = history.envs[slot], True, []
    for later in range(row, row + steps):
        goes_on = goes_on and rows[later].is_step and rows[later].discount > 0
        found.append((goes_on, rows[later].action, history.stack(slot, later + 1)) if goes_on else (False,))
    return found


@pytest.mark.fault("W07")
@pytest.mark.parametrize(("envs", "steps", "n_step"), [(1, 3, 1), (1, 2, 4), (3, 5, 3)])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_future_equals_the_one_rebuilt_from_history(envs: int, steps: int, n_step: int, data) -> None:
    replay = make_replay(envs=envs, steps=steps, n_step=n_step)
    history, window = History(replay, envs), max(steps, n_step)
    for events in data.draw(st.lists(st.tuples(*[EVENTS] * envs), min_size=20, max_size=50)):
        history.play(events)
    replay.check()
    newest = len(history.envs[0]) - 1
    expected = [
        future_of(history, slot, row, steps)
        for row in range(max(0, newest - window - CAPACITY + 1), newest - window + 1)
        for slot in range(envs)
        if history.envs[slot][row].is_step
    ]
    batch = sample_at(replay, 0)
    assert len(batch.follows) == len(expected)
    for number, future in enumerate(expected):
        for step, (goes_on, *rest) in enumerate(future):
            assert batch.follows[number, step].item() == goes_on
            if goes_on:
                action, stack = rest
                assert batch.actions[number, step].item() == action
                assert batch.future[number, step, :, 0].tolist() == [list(frame) for frame in stack]


def test_transitions_are_those_of_n_steps_however_many_are_predicted() -> None:
    replay = make_replay(envs=1, steps=5, n_step=2)
    history = History(replay, 1)
    for _ in range(9):
        history.play(("plain",))
    batch = sample_at(replay, 0)
    assert torch.allclose(batch.discount_t, torch.full_like(batch.discount_t, GAMMA**2))


def test_horizon_of_later_minibatches_can_be_set_up_to_the_window() -> None:
    replay = make_replay(envs=1, steps=5, n_step=2)
    history = History(replay, 1)
    for _ in range(9):
        history.play(("plain",))
    replay.set_horizon(Horizon(n_step=5, gamma=0.5))
    batch = sample_at(replay, 0)
    assert batch.discount_t.tolist() == [0.5**5] * len(batch.index)
    assert torch.equal(batch.s_t, batch.future[:, -1])
