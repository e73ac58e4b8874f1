"""A group of columns holds what a replay of its own would hold, whenever the groups are written."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from histories import BOUND, EVENTS, GAMMA, STACK, History
from hypothesis import given, settings
from hypothesis import strategies as st
from tapes import CPU, batch, drawn_at, prioritized
from test_sequences_rebuilt import Shape

from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.buffer import ReplayBuffer, ring_rows
from atari_dqn.replay.group_rows import GroupedRows, group_rows
from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.replay.replay import Replay
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.rows import pieces_of
from atari_dqn.replay.sequences import SequenceReplay
from atari_dqn.replay.states import StateTable
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.replay.uniform_groups import GroupedUniformSampler

ENVS, EACH, STEPS = 4, 2, 9
SHAPE = Shape(length=4, burn_in=2, period=2, n_step=3, stack=3, envs=EACH)
ROWS = ring_rows(capacity_steps=STEPS * ENVS, envs=ENVS, stack=STACK, n_step=3)
PLAYS = st.lists(st.tuples(st.integers(0, 1), EVENTS, EVENTS), min_size=30, max_size=70)


def uniform(ring: FrameRing, groups: int) -> UniformSampler | GroupedUniformSampler:
    sizes = {"capacity": ring.zero_index, "batch_size": 32, "seed": 0, "device": CPU}
    if groups == 1:
        return UniformSampler(**sizes)
    return GroupedUniformSampler(**sizes, groups=groups, num_envs=ring.num_envs)


def by_priorities(ring: FrameRing, groups: int):
    del groups
    return prioritized(capacity=ring.zero_index)


def ring_of(envs: int, rows: int = ROWS, stack: int = STACK) -> FrameRing:
    return FrameRing(rows=rows, num_envs=envs, frame_shape=(1, 3), stack=stack, device=CPU)


def transitions_on(ring: FrameRing, sampler, states=None) -> Replay:
    del states
    return ReplayBuffer(ring, sampler, n_step=3, gamma=GAMMA, max_abs_reward=BOUND)


def sequences_on(ring: FrameRing, sampler, states=None) -> Replay:
    return SequenceReplay(
        ring, sampler, length=SHAPE.length, burn_in=SHAPE.burn_in, period=SHAPE.period, n_step=SHAPE.n_step,
        gamma=GAMMA, max_abs_reward=BOUND, state_width=2, states=states,
    )  # fmt: skip


def table(ring: FrameRing) -> StateTable:
    return StateTable(rows=ring.rows, num_envs=ring.num_envs, slots=ring.rows // 2 + 4, width=2, device=CPU)


def grouped(make, sampler=uniform) -> GroupedReplay:
    ring = ring_of(ENVS)
    shared, states = sampler(ring, 2), table(ring)
    parts = [range(2), range(2, 4)]
    groups = [make(ring.group(envs), shared, states.group(envs)) for envs in parts]
    return GroupedReplay(ring, shared, groups, states=None if make is transitions_on else states)


def alone(make, sampler=uniform) -> Replay:
    ring = ring_of(EACH)
    return make(ring, sampler(ring, 1), table(ring))


def assert_equal_samples(group: Replay, other: Replay) -> None:
    """The samples of a group are those of another replay, in every column but the index."""
    own = group.sampled_indices()
    row, env = own // ENVS, own % ENVS - group.ring.first_env
    index = row * EACH + env
    assert torch.equal(index, other.sampled_indices())
    if not len(own):
        return
    found, expected = group.minibatch(own, torch.ones(len(own))), other.minibatch(index, torch.ones(len(own)))
    for field in fields(expected):
        if field.name != "index":
            assert torch.equal(getattr(found, field.name), getattr(expected, field.name)), field.name


@pytest.mark.parametrize("sampler", [uniform, by_priorities])
@pytest.mark.parametrize("make", [transitions_on, sequences_on])
@settings(max_examples=4, deadline=None, derandomize=True)
@given(plays=PLAYS)
def test_a_group_holds_what_a_replay_of_its_own_holds(make, sampler, plays) -> None:
    replay, others = grouped(make, sampler), [alone(make, sampler) for _ in range(2)]
    histories = [
        (History(group, EACH), History(other, EACH))
        for group, other in zip(replay.groups, others, strict=True)
    ]
    for group, *events in plays:
        for history in histories[group]:
            history.play(tuple(events))
        replay.check()
        assert_equal_samples(replay.groups[group], others[group])
    assert replay.num_transitions == sum(other.num_transitions for other in others)


@pytest.mark.parametrize("sampler", [uniform, by_priorities])
@pytest.mark.parametrize("make", [transitions_on, sequences_on])
def test_a_restored_replay_samples_as_the_saved_one(make, sampler) -> None:
    saved, restored = grouped(make, sampler), grouped(make, sampler)
    histories = [History(group, EACH) for group in saved.groups]
    for count, history in zip((40, 25), histories, strict=True):
        for number in range(count):
            history.play(("game over" if number % 11 == 5 else "plain", "plain"))
    restored.load_state_dict(saved.state_dict())
    restored.check()
    saved.prepare(0)
    restored.prepare(0)
    found, expected = restored.sample(), saved.sample()
    assert all(
        torch.equal(getattr(found, field.name), getattr(expected, field.name)) for field in fields(found)
    )


def test_rows_of_groups_are_read_by_number() -> None:
    replay = grouped(transitions_on)
    for count, group in zip((40, 3), replay.groups, strict=True):
        history = History(group, EACH)
        for _ in range(count):
            history.play(("plain", "plain"))
    rows = replay.state_dict()["ring"]["rows"]
    assert isinstance(rows, GroupedRows)
    later = group_rows(EACH)
    assert list(pieces_of(rows)) == [(40 - ROWS + 1, 40), (later, later + 3)]
    assert rows.read(later, later + 3)["frame"][:, 0, 0].tolist() == [[1, 0, 0], [1, 0, 1], [1, 0, 2]]


def test_a_loan_keeps_the_rows_of_every_group_until_they_are_given_back() -> None:
    replay = grouped(transitions_on)
    for group in replay.groups:
        history = History(group, EACH)
        for _ in range(ROWS + 2):
            history.play(("plain", "plain"))
    rows = replay.state_dict()["ring"]["rows"]
    loan = rows.borrow()
    loan.give_back(rows.spans[0][1])
    assert [group.ring._loan.ended for group in replay.groups] == [False, False]
    replay.groups[0].ring._loan.wait_for(rows.spans[0][1] - 1)
    loan.end()
    assert [group.ring._loan.ended for group in replay.groups] == [True, True]


def test_uniform_draws_select_every_transition_of_every_group_equally_often() -> None:
    replay = grouped(transitions_on)
    for count, group in zip((30, 8), replay.groups, strict=True):
        history = History(group, EACH)
        for _ in range(count):
            history.play(("plain", "plain"))
    replay.prepare(0)
    draws = 16 * replay.num_transitions
    unit = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws
    indices, _ = replay.sampler.indices_and_weights(unit.view(-1, 32))
    assert Counter(indices.flatten().tolist()) == Counter(16 * replay.sampled_indices().tolist())


def test_age_of_an_index_is_counted_from_the_newest_row_of_its_group() -> None:
    replay = grouped(transitions_on)
    for count, group in zip((10, 4), replay.groups, strict=True):
        history = History(group, EACH)
        for _ in range(count):
            history.play(("plain", "plain"))
    rows, envs = np.array([10, 7, 4, 1]), np.array([0, 1, 2, 3])
    index = torch.from_numpy(replay.ring.index_of(rows, envs))
    assert replay.age_steps(index).tolist() == [0, 12, 0, 12]  # 3 rows of 4 environments


def test_share_of_steps_weighs_each_group_by_its_rows() -> None:
    replay = grouped(transitions_on)
    histories = [History(group, EACH) for group in replay.groups]
    for _ in range(6):
        histories[0].play(("plain", "plain"))
    for event in ("game over", "plain"):  # after the end of a game there is a row without a step
        histories[1].play((event, event))
    assert [group.step_share() for group in replay.groups] == [1.0, 0.5]
    assert replay.step_share() == 7 / 8  # 12 + 2 steps at 16 indices


def test_a_reset_of_all_environments_of_a_group_ends_windows_as_a_truncation() -> None:
    replay = grouped(transitions_on)
    group = replay.groups[1]
    history = History(group, EACH)
    for _ in range(4):
        history.play(("plain", "plain"))
    reset = batch(np.full((EACH, 1, 3), 9), first=np.ones(EACH))
    group.append(np.zeros(EACH, dtype=np.int64), np.ones(EACH), reset)
    for _ in range(3):
        group.append(
            np.zeros(EACH, dtype=np.int64), np.ones(EACH), replace(reset, first=np.zeros(EACH, bool))
        )
    replay.check()
    index = torch.from_numpy(group.ring.index_of(np.array([3]), np.array([0])))
    found = replay.minibatch(index, torch.ones(1))
    assert isinstance(found, Minibatch)
    assert found.discount_t.item() == pytest.approx(GAMMA)  # one step, which bootstraps from frame 4
    assert found.s_t[0, -1, 0].tolist() == list(history.envs[0][4].frame)
    assert group.ring.index_of(4, 0) not in replay.sampled_indices().tolist()


def test_errors_of_added_indices_are_their_first_priorities() -> None:
    sampler = prioritized(alpha=0.5, priority_offset=0.0 + 1e-9)
    sampler.add(torch.tensor([3, 4, 5]), torch.tensor([4.0, 0.25, float("nan")]))
    sampler.prepare(0)
    torch.testing.assert_close(
        sampler.priorities(), torch.tensor([2.0, 0.5, 2.0], dtype=torch.float64), atol=1e-6, rtol=0
    )  # without an error: the largest so far


def test_added_errors_are_taken_back_when_their_indices_are_dropped() -> None:
    sampler = prioritized()
    sampler.add(torch.tensor([3, 4]), torch.tensor([1.0, 2.0]))
    sampler.drop(torch.tensor([3]))
    assert set(drawn_at(sampler, 0)[0].tolist()) == {4}
