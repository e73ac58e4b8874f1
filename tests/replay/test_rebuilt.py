"""Every transition of a replay equals the one that is rebuilt step by step from the complete history."""

import pytest
import torch
from histories import BOUND, EVENTS, GAMMA, STACK, History
from hypothesis import given, settings
from hypothesis import strategies as st
from tapes import make_buffer, prioritized, sample_at

from atari_dqn.replay.uniform import UniformSampler


def transition(history, slot: int, row: int, n_step: int):
    rows, value, factor, end = history.envs[slot], 0.0, 1.0, row
    while end < row + n_step and rows[end].is_step and factor:
        value += factor * min(max(rows[end].reward, -BOUND), BOUND)
        factor *= GAMMA * rows[end].discount
        end += 1
    return history.stack(slot, row), rows[row].action, value, factor, history.stack(slot, end)


def sampleable(history: History, capacity: int, n_step: int) -> list[tuple[int, int]]:
    newest, per_slot = len(history.envs[0]) - 1, -(-capacity // len(history.envs))
    wrapped = newest >= per_slot + STACK - 1 + n_step
    oldest = newest - n_step - per_slot + 1 if wrapped else 0
    return [
        (slot, row)
        for row in range(oldest, newest - n_step + 1)
        for slot in range(len(history.envs))
        if history.envs[slot][row].is_step
    ]


def check_all(history: History, capacity: int, n_step: int) -> None:
    expected = sampleable(history, capacity, n_step)
    assert history.buffer.num_transitions == len(expected)
    if not expected:
        return
    found = sample_at(history.buffer, 0)
    rebuilt = [transition(history, slot, row, n_step) for slot, row in expected]
    s_tm1, a_tm1, r_t, discount_t, s_t = zip(*rebuilt, strict=True)
    assert found.s_tm1[:, :, 0].tolist() == [[list(frame) for frame in stack] for stack in s_tm1]
    assert found.a_tm1.tolist() == list(a_tm1)
    torch.testing.assert_close(found.r_t, torch.tensor(r_t), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(found.discount_t, torch.tensor(discount_t), atol=1e-6, rtol=1e-6)
    continues = found.discount_t != 0  # if it is 0, s_t is not used
    after = torch.tensor([[list(frame) for frame in stack] for stack in s_t], dtype=torch.uint8)
    assert torch.equal(found.s_t[continues][:, :, 0], after[continues])


@pytest.mark.fault("W07")
@pytest.mark.parametrize("n_step", [1, 3, 5])
@pytest.mark.parametrize("envs", [1, 3])
@settings(max_examples=4, deadline=None, derandomize=True)
@given(data=st.data())
def test_every_transition_equals_the_one_rebuilt_from_history(envs: int, n_step: int, data) -> None:
    capacity = 8 * envs
    iterations = data.draw(st.lists(st.tuples(*[EVENTS] * envs), min_size=20, max_size=70))
    buffer = make_buffer(
        envs=envs, capacity=capacity, stack=STACK, n_step=n_step, gamma=GAMMA, max_abs_reward=BOUND,
        frame_shape=(1, 3),
    )  # fmt: skip
    history = History(buffer, envs)
    for iteration, events in enumerate(iterations):
        history.play(events)
        buffer.check()
        if iteration % 5 == 0:  # less than the 8 stored transitions, so each is checked
            check_all(history, capacity, n_step)


@pytest.mark.fault("D15")
@pytest.mark.parametrize("sampler", [UniformSampler, prioritized])
@pytest.mark.parametrize(("envs", "n_step"), [(1, 1), (1, 3), (3, 1), (3, 5)])
@settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data())
def test_only_whole_transitions_are_drawn_whatever_the_episodes(
    envs: int, n_step: int, sampler, data
) -> None:
    capacity = 8 * envs
    iterations = data.draw(st.lists(st.tuples(*[EVENTS] * envs), min_size=20, max_size=60))
    buffer = make_buffer(
        envs=envs, capacity=capacity, stack=STACK, n_step=n_step, frame_shape=(1, 3), batch_size=64,
        sampler=sampler,
    )  # fmt: skip
    history = History(buffer, envs)
    for iteration, events in enumerate(iterations):
        history.play(events)
        buffer.check()  # the list has exactly the complete transitions
        expected = sampleable(history, capacity, n_step)
        assert buffer.num_transitions == len(expected)
        if expected:
            found = sample_at(buffer, 0)
            places = {row % buffer.ring.rows * envs + slot for slot, row in expected}
            assert set(found.index.tolist()) <= places
            buffer.update_priorities(found, (found.index + iteration) % 7 * 0.3)
