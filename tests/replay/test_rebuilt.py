"""Every transition of a replay equals the one that is rebuilt step by step from the complete history."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tapes import batch, make_buffer, prioritized, sample_at

from atari_dqn.replay.uniform import UniformSampler

STACK, GAMMA, BOUND = 3, 0.9, 2.0
PLAIN, GAME_OVER, CAP, LIFE = "plain", "game over", "cap", "life"
EVENTS = st.sampled_from([PLAIN, PLAIN, PLAIN, GAME_OVER, CAP, LIFE])


@dataclass
class Row:
    """A time step of one environment: its observation, and the action and its result once they are known."""

    frame: tuple[int, ...]
    first: bool
    action: int = -1
    reward: float = 0.0
    discount: float = 1.0
    is_step: bool = False


def encoded(slot: int, row: int) -> tuple[int, int, int]:
    return slot + 1, row // 256, row % 256


class History:
    """Plays events into a buffer and keeps everything."""

    def __init__(self, buffer, envs: int) -> None:
        self.buffer, self.envs = buffer, [[Row(encoded(slot, 0), True)] for slot in range(envs)]
        self.ended = np.zeros(envs, dtype=bool)
        buffer.begin(self._batch(np.zeros(envs), {}, np.ones(envs, dtype=bool)))

    def play(self, events: tuple[str, ...]) -> None:
        number, resets = len(self.envs[0]), self.ended.copy()
        rewards = np.where(resets, 0.0, [(number * 7 + slot * 3) % 9 - 4 for slot in range(len(self.envs))])
        actions = np.array([(number + 5 * slot) % 18 for slot in range(len(self.envs))])
        flags = {
            "terminated": [e == GAME_OVER and not r for e, r in zip(events, resets, strict=True)],
            "truncated": [e == CAP and not r for e, r in zip(events, resets, strict=True)],
            "life_lost": [e in (GAME_OVER, LIFE) and not r for e, r in zip(events, resets, strict=True)],
        }
        for slot, rows in enumerate(self.envs):
            rows[-1] = Row(
                rows[-1].frame, rows[-1].first, int(actions[slot]), float(rewards[slot]),
                0.0 if flags["life_lost"][slot] else 1.0, not resets[slot],
            )  # fmt: skip
            rows.append(Row(encoded(slot, number), bool(resets[slot])))
        self.ended = np.array(flags["terminated"]) | np.array(flags["truncated"])
        step = self._batch(rewards, flags, resets)
        self.buffer.append(actions, step.discount(terminal_on_life_loss=True), step)

    def _batch(self, rewards, flags, first):
        frames = np.array([[rows[-1].frame] for rows in self.envs])
        return batch(frames, reward=rewards, first=first, **flags)

    def stack(self, slot: int, row: int) -> list[tuple[int, ...]]:
        rows, frames = self.envs[slot], []
        while len(frames) < STACK:
            frames.append(rows[row].frame)
            if rows[row].first:
                break
            row -= 1
        return [(0, 0, 0)] * (STACK - len(frames)) + frames[::-1]

    def transition(self, slot: int, row: int, n_step: int):
        rows, value, factor, end = self.envs[slot], 0.0, 1.0, row
        while end < row + n_step and rows[end].is_step and factor:
            value += factor * min(max(rows[end].reward, -BOUND), BOUND)
            factor *= GAMMA * rows[end].discount
            end += 1
        return self.stack(slot, row), rows[row].action, value, factor, self.stack(slot, end)

    def sampleable(self, capacity: int, n_step: int) -> list[tuple[int, int]]:
        newest, per_slot = len(self.envs[0]) - 1, -(-capacity // len(self.envs))
        wrapped = newest >= per_slot + STACK - 1 + n_step
        oldest = newest - n_step - per_slot + 1 if wrapped else 0
        return [
            (slot, row)
            for row in range(oldest, newest - n_step + 1)
            for slot in range(len(self.envs))
            if self.envs[slot][row].is_step
        ]


def check_all(history: History, capacity: int, n_step: int) -> None:
    expected = history.sampleable(capacity, n_step)
    assert history.buffer.num_transitions == len(expected)
    if not expected:
        return
    found = sample_at(history.buffer, 0)
    rebuilt = [history.transition(slot, row, n_step) for slot, row in expected]
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
@settings(max_examples=8, deadline=None, derandomize=True)
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
@settings(max_examples=5, deadline=None, derandomize=True)
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
        expected = history.sampleable(capacity, n_step)
        assert buffer.num_transitions == len(expected)
        if expected:
            found = sample_at(buffer, 0)
            places = {row % buffer.ring.rows * envs + slot for slot, row in expected}
            assert set(found.index.tolist()) <= places
            buffer.update_priorities(found, (found.index + iteration) % 7 * 0.3)
