import copy

import numpy as np
import pytest
import torch
from chance import p_value
from tapes import CPU, batch, make_buffer, play_tape, sample_at

from atari_dqn.replay.buffer import ring_rows
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.uniform import UniformSampler


def filled(steps: int, **values):
    """Create a buffer with one endless episode; the two pixels of a frame are its number."""
    envs = values.get("envs", 1)
    buffer = make_buffer(**{"sampler": UniformSampler, "frame_shape": (1, 2), "stack": 1} | values)
    buffer.begin(numbered(0, envs, first=True))
    extend(buffer, range(1, steps + 1))
    return buffer


def extend(buffer, numbers) -> None:
    envs = buffer.ring.num_envs
    for number in numbers:
        buffer.append(np.full(envs, number % 18), np.ones(envs), numbered(number, envs))


def numbered(number: int, envs: int, *, first: bool = False):
    return batch(np.tile(np.array(divmod(number, 256)), (envs, 1, 1)), first=np.full(envs, first))


def numbers_drawn(buffer, draws: int) -> np.ndarray:
    frames = torch.cat([sample_at(buffer, 0).s_tm1 for _ in range(draws)])[:, 0, 0].int()
    return (frames[:, 0] * 256 + frames[:, 1]).numpy()


@pytest.mark.parametrize(
    ("envs", "n_step", "stack", "expected"), [(1, 1, 4, 100), (1, 5, 4, 100), (4, 3, 4, 100), (3, 1, 1, 102)]
)
def test_full_replay_samples_from_capacity_steps_transitions(
    envs: int, n_step: int, stack: int, expected: int
) -> None:
    buffer = filled(400, capacity=100, envs=envs, n_step=n_step, stack=stack)
    assert buffer.num_transitions == expected  # of 3 environments each holds 34


def test_replay_keeps_the_newest_transitions() -> None:
    buffer = filled(57, capacity=10)  # the newest transition is 56 → 57
    assert set(numbers_drawn(buffer, 40)) == set(range(47, 57))


@pytest.mark.fault("D21")
@pytest.mark.parametrize("steps", [39, 64, 90])
def test_draws_are_uniform_over_all_transitions(steps: int) -> None:
    # 39 steps: not wrapped; 64 and 90: the seam lies inside
    buffer = filled(steps, capacity=40, batch_size=500)
    drawn = numbers_drawn(buffer, 40)
    oldest = max(0, steps - 40)
    counts = np.bincount(drawn - oldest, minlength=steps - oldest)
    assert len(drawn) == 20_000
    assert len(counts) == steps - oldest
    assert p_value(counts) > 0.001


def test_draws_are_uniform_over_environments() -> None:
    buffer = filled(64, capacity=40, envs=4, batch_size=500)
    envs = np.concatenate([sample_at(buffer, 0).index.numpy() % 4 for _ in range(40)])
    assert p_value(np.bincount(envs)) > 0.001


@pytest.mark.fault("W08")
def test_drawing_is_with_replacement() -> None:
    # minibatches of 2 from 3 transitions: a third of 900 have one transition twice, standard deviation 14
    buffer = filled(3, capacity=40, batch_size=2)
    twice = sum(len(set(sample_at(buffer, 0).index.tolist())) == 1 for _ in range(900))
    assert 250 < twice < 350


def test_sampling_from_an_empty_replay_is_an_assertion_error() -> None:
    buffer = make_buffer(sampler=UniformSampler)
    play_tape(buffer, "A")
    with pytest.raises(AssertionError, match="nothing to draw"):
        sample_at(buffer, 0)


@pytest.mark.parametrize("steps", [12, 70])
def test_restored_replay_samples_the_same_transitions(steps: int) -> None:
    saved = filled(steps, capacity=20, n_step=3, stack=4)
    sample_at(saved, 0)
    loaded = make_buffer(sampler=UniformSampler, frame_shape=(1, 2), stack=4, capacity=20, n_step=3, seed=99)
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    for buffer in (saved, loaded):
        extend(buffer, range(steps + 1, steps + 31))
        buffer.check()
    for _ in range(5):
        one, other = sample_at(saved, 0), sample_at(loaded, 0)
        assert all(
            torch.equal(getattr(one, name), getattr(other, name))
            for name in ("s_tm1", "a_tm1", "r_t", "discount_t", "s_t", "weight", "index")
        )


def test_state_of_a_replay_before_its_first_wrap_has_only_stored_rows() -> None:
    rows = filled(12, capacity=1_000).state_dict()["ring"]["rows"]
    assert (rows.first, rows.stop) == (0, 12)  # row 12, the newest, is not complete


@pytest.mark.fault("P09")
def test_state_of_another_shape_is_refused_with_both_shapes() -> None:
    state = filled(70, capacity=20).state_dict()
    other = make_buffer(sampler=UniformSampler, frame_shape=(1, 3), stack=1, capacity=20)
    with pytest.raises(ValueError, match=r"replay\.frame: found rows of \(1, 1, 2\), expected \(1, 1, 3\)"):
        other.load_state_dict(state)


@pytest.mark.fault("P09")
@pytest.mark.parametrize(("capacity", "first"), [(10, 60), (30, 40)])
def test_state_of_another_capacity_is_refused_with_both_ranges(capacity: int, first: int) -> None:
    state = filled(70, capacity=20).state_dict()
    other = make_buffer(sampler=UniformSampler, frame_shape=(1, 2), stack=1, capacity=capacity)
    with pytest.raises(ValueError, match=rf"found rows from \d+ on, expected from {first} on"):
        other.load_state_dict(state)


def test_state_without_its_newest_rows_is_refused_with_both_ends() -> None:
    state = filled(12, capacity=20).state_dict()
    state["ring"]["newest"] = 13
    other = make_buffer(sampler=UniformSampler, frame_shape=(1, 2), stack=1, capacity=20)
    with pytest.raises(ValueError, match="found rows before 12, expected up to 13"):
        other.load_state_dict(state)


@pytest.mark.fault("P01")
def test_transition_costs_one_frame_and_twenty_bytes() -> None:
    rows = ring_rows(capacity_steps=1_000, envs=1, stack=4, n_step=1)
    ring = FrameRing(rows=rows, num_envs=1, frame_shape=(84, 84), stack=4, device=CPU)
    sampler = UniformSampler(capacity=rows, batch_size=32, seed=0, device=CPU)
    tensors = [value for part in (ring, sampler) for value in vars(part).values() if torch.is_tensor(value)]
    resident = sum(tensor.nbytes for tensor in tensors)
    # 84·84 + action 2 + reward 4 + discount 4 + start 1 + is_step 1 + place in the list 8, and 5 spare rows
    assert resident / 1_000 == pytest.approx(7_076, rel=0.01)


def test_state_is_a_view_of_the_replay() -> None:
    buffer = filled(70, capacity=20)
    rows = buffer.state_dict()["ring"]["rows"]
    place = rows.first % buffer.ring.rows
    read = rows.read(rows.first, rows.first + 2)["frame"]
    assert read.ctypes.data == buffer.ring.frame[place].data_ptr()


def test_check_fails_if_the_sampler_has_an_index_without_a_step() -> None:
    buffer = play_tape(make_buffer(), "ABCDEF")
    buffer.ring.is_step[2] = False
    with pytest.raises(AssertionError):
        buffer.check()
