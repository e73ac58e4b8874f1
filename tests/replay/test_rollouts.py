"""Rollouts: which rows are learned from, in what order, and with what targets."""

import copy
from itertools import cycle

import pytest
import torch
from histories import CAP, GAME_OVER, LIFE, PLAIN, STACK, History
from tapes import CPU

from atari_dqn.replay.buffer import ring_rows
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.rollouts import Rollouts
from atari_dqn.replay.uniform import UniformSampler

ENVS, STEPS = 2, 4


def make_rollouts(batch_size: int = 4) -> Rollouts:
    rows = ring_rows(capacity_steps=ENVS * STEPS, envs=ENVS, stack=STACK, n_step=1)
    ring = FrameRing(rows=rows, num_envs=ENVS, frame_shape=(1, 3), stack=STACK, device=CPU)
    sampler = UniformSampler(capacity=rows * ENVS, batch_size=batch_size, seed=0, device=CPU)
    return Rollouts(ring, sampler, steps=STEPS, max_abs_reward=2.0)


def played(count: int) -> tuple[Rollouts, History]:
    rollouts = make_rollouts()
    history = History(rollouts, ENVS)
    events = cycle([(PLAIN, PLAIN), (PLAIN, GAME_OVER), (CAP, PLAIN), (PLAIN, LIFE), (PLAIN, PLAIN)])
    for _ in range(count):
        history.play(next(events))
        rollouts.check()
    return rollouts, history


@pytest.mark.parametrize("count", [4, 8, 12, 40])
def test_complete_rollout_has_the_rows_since_the_one_before(count: int) -> None:
    rollouts, history = played(count)
    rollouts.set_returns(torch.arange(ENVS * STEPS).view(STEPS, ENVS).float())
    batch = rollouts.minibatch(rollouts.indices()[:-1].flatten(), torch.ones(ENVS * STEPS))
    for place in range(ENVS * STEPS):
        row, slot = count - STEPS + place // ENVS, place % ENVS
        assert batch.s_tm1[place, :, 0].tolist() == [list(each) for each in history.stack(slot, row)]
        assert batch.a_tm1[place] == history.envs[slot][row].action
        assert batch.r_t[place] == place
    assert not batch.discount_t.any()


def test_rollout_is_complete_after_every_so_many_rows() -> None:
    rollouts = make_rollouts()
    history, found = History(rollouts, ENVS), []
    for count in range(1, 13):
        history.play((PLAIN, PLAIN))
        if rollouts.is_complete:
            found.append(count)
    assert found == [4, 8, 12]


def test_every_row_is_sampled_once_before_any_is_sampled_again() -> None:
    rollouts, _ = played(8)
    rollouts.set_returns(torch.zeros(STEPS, ENVS))
    passes = [torch.cat([rollouts.sample().index for _ in range(2)]).tolist() for _ in range(3)]
    expected = sorted(rollouts.indices()[:-1].flatten().tolist())
    assert [sorted(each) for each in passes] == [expected] * 3
    assert passes[0] != passes[1]


def test_last_frame_of_an_episode_has_weight_zero() -> None:
    rollouts, history = played(4)
    rollouts.set_returns(torch.zeros(STEPS, ENVS))
    for batch in (rollouts.sample(), rollouts.sample()):
        for index, weight in zip(batch.index.tolist(), batch.weight.tolist(), strict=True):
            row, slot = divmod(index, ENVS)
            assert weight == history.envs[slot][row].is_step
    assert sum(row.is_step for rows in history.envs for row in rows[:4]) == 6


def test_loaded_rollouts_go_on_in_the_order_of_the_saved_ones() -> None:
    saved, history = played(6)
    loaded = make_rollouts()
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    other = copy.copy(history)
    other.envs, other.buffer = copy.deepcopy(history.envs), loaded
    for each in (history, other):
        each.play((PLAIN, PLAIN))
        each.play((PLAIN, PLAIN))
        each.buffer.set_returns(torch.zeros(STEPS, ENVS))
    assert torch.equal(saved.sample().index, loaded.sample().index)
    assert torch.equal(saved.indices(), loaded.indices())
