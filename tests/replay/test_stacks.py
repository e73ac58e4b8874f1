import numpy as np
import pytest
import torch
from tapes import CPU, batch, make_buffer, play_tape, sample_at, transitions

from atari_dqn.fast.cpu.library import library
from atari_dqn.fast.cpu.ring import KernelRing
from atari_dqn.replay.ring import FrameRing


def make_ring(kind: type[FrameRing], *, rows: int, envs: int, stack: int) -> FrameRing:
    """Create a ring full of random frames, a third of which are the first of an episode."""
    ring = kind(rows=rows, num_envs=envs, frame_shape=(3, 5), stack=stack, device=CPU)
    generator = torch.Generator().manual_seed(0)
    ring.frame[:-1] = torch.randint(1, 256, ring.frame[:-1].shape, generator=generator, dtype=torch.uint8)
    ring.start[:] = torch.rand(rows * envs, generator=generator) < 1 / 3
    return ring


def newest(buffer) -> list[list[int]]:
    return buffer.newest_stacks()[:, :, 0, 0].tolist()


def test_stack_of_the_first_frame_has_three_zero_frames() -> None:
    assert newest(play_tape(make_buffer(), "A")) == [[0, 0, 0, 1]]


def test_stack_has_the_four_newest_frames_oldest_first() -> None:
    assert newest(play_tape(make_buffer(), "ABCDEF")) == [[3, 4, 5, 6]]


def test_stack_is_zero_before_the_first_frame_of_its_episode() -> None:
    assert transitions(play_tape(make_buffer(), "ABCD|EFGH"))["F"].s_tm1 == "··EF"


def test_stack_of_a_first_frame_has_no_frame_of_the_previous_episode() -> None:
    assert newest(play_tape(make_buffer(), "ABCD/E")) == [[0, 0, 0, 5]]


def test_lost_life_does_not_cut_a_stack() -> None:
    assert newest(play_tape(make_buffer(), "ABC!D")) == [[1, 2, 3, 4]]


@pytest.mark.fault("D21")
def test_stack_crosses_the_end_of_the_ring() -> None:
    buffer = make_buffer(capacity=3)  # 3 + 3 + 1 = 7 rows: A…G fill it, H and I lie where A and B were
    play_tape(buffer, "ABCDEFGHI")
    assert newest(buffer) == [[6, 7, 8, 9]]


HAS_KERNELS = pytest.mark.skipif(library("portable") is None, reason="no kernels of our own on this machine")


@HAS_KERNELS
@pytest.mark.parametrize("envs", [1, 3])
@pytest.mark.parametrize("stack", [1, 4])
def test_kernel_puts_stacks_together_as_torch_does(envs: int, stack: int) -> None:
    rings = [make_ring(kind, rows=9, envs=envs, stack=stack) for kind in (KernelRing, FrameRing)]
    indices = torch.arange(9 * envs)
    assert torch.equal(rings[0].stacks(indices), rings[1].stacks(indices))


@HAS_KERNELS
@pytest.mark.parametrize("index", [-1, 27])
def test_index_outside_of_the_ring_is_refused(index: int) -> None:
    with pytest.raises(IndexError):
        make_ring(KernelRing, rows=9, envs=3, stack=4).stacks(torch.tensor([0, index]))


def test_stack_size_one_is_the_frame_itself() -> None:
    assert newest(play_tape(make_buffer(stack=1), "ABC")) == [[3]]


def test_stacks_of_environments_are_separate() -> None:
    buffer = make_buffer(envs=2)
    buffer.begin(batch(np.array([[[1]], [[11]]]), first=[True, True]))
    buffer.append(np.array([0, 0]), np.ones(2), batch(np.array([[[2]], [[12]]]), first=[False, True]))
    assert newest(buffer) == [[0, 0, 1, 2], [0, 0, 0, 12]]


@pytest.mark.fault("W10")
def test_no_state_holds_a_frame_later_than_its_step() -> None:
    found = transitions(play_tape(make_buffer(capacity=6), "ABCD|EFG!HIJKLMNO"))
    assert all(transition.s_tm1 == "".join(sorted(transition.s_tm1)) for transition in found.values())
    assert len(found) > 5
    assert all(ord(max(transition.s_tm1)) - 64 == transition.action for transition in found.values())


@pytest.mark.fault("D-ok.bytes")
def test_frames_stay_bytes_until_the_network() -> None:
    buffer = play_tape(make_buffer(), "ABC")
    found = sample_at(buffer, 0)
    assert {found.s_tm1.dtype, found.s_t.dtype, buffer.newest_stacks().dtype} == {torch.uint8}


def test_pixel_values_are_stored_unchanged() -> None:
    buffer = make_buffer(frame_shape=(1, 2), stack=1)
    buffer.begin(batch(np.array([[[255, 0]]]), first=[True]))
    assert buffer.newest_stacks().flatten().tolist() == [255, 0]


@pytest.mark.fault("P09")
@pytest.mark.parametrize("side", [1, 3])
def test_frames_of_another_size_are_refused_with_both_shapes(side: int) -> None:
    # NumPy would broadcast a single pixel to a whole frame
    buffer = make_buffer(frame_shape=(2, 2))
    with pytest.raises(AssertionError, match=rf"found \(1, {side}, {side}\), expected \(1, 2, 2\)"):
        buffer.begin(batch(np.zeros((1, side, side)), first=[True]))
