"""Tensors that are moved to a flat buffer keep values and layouts, and the buffer is found again."""

import pytest
import torch
from torch import nn

from atari_dqn.agent.optimizers import DeepMindRMSProp, deepmind_rmsprop
from atari_dqn.fast import optimizers
from atari_dqn.fast.flat_buffer import ALIGNMENT, ensure_buffer, find_buffer, move_to_buffer

RMSPROP = {"learning_rate": 0.01, "epsilon": 0.01, "gradient_decay": 0.95, "squared_gradient_decay": 0.9}


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def weights() -> list[nn.Parameter]:
    """Return a channels-last convolution's, a matrix and a bias, whose sizes are no multiples of anything."""
    convolution = draw(2, 3, 3, 3).to(memory_format=torch.channels_last)
    return [nn.Parameter(tensor) for tensor in (convolution, draw(5, 7), draw(7))]


def test_moved_tensors_keep_values_and_strides() -> None:
    moved, before = weights(), weights()
    move_to_buffer(moved)
    for one, other in zip(moved, before, strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_change_of_a_buffer_changes_its_tensors() -> None:
    moved, before = weights(), weights()
    move_to_buffer(moved).mul_(2)
    assert all(torch.equal(one, 2 * other) for one, other in zip(moved, before, strict=True))


def test_each_tensor_begins_at_an_aligned_place() -> None:
    moved = weights()
    buffer = move_to_buffer(moved)
    assert [tensor.storage_offset() % ALIGNMENT for tensor in moved] == [0, 0, 0]
    assert len(buffer) % ALIGNMENT == 0


def test_buffer_is_found_again() -> None:
    moved = weights()
    buffer, found = move_to_buffer(moved), find_buffer(moved)
    assert found is not None
    assert (found.data_ptr(), len(found)) == (buffer.data_ptr(), len(buffer))


def test_tensors_apart_or_in_another_order_have_no_buffer() -> None:
    apart, moved = weights(), weights()
    move_to_buffer(moved)
    assert find_buffer(apart) is None
    assert find_buffer(moved[::-1]) is None
    assert find_buffer([moved[0], moved[2]]) is None


@pytest.mark.parametrize("length", [ALIGNMENT - 1, 2 * ALIGNMENT])
def test_memory_of_another_length_is_no_buffer(length: int) -> None:
    assert find_buffer([torch.zeros(length)[: ALIGNMENT - 1]]) is None


def test_tensors_are_moved_only_once() -> None:
    moved = weights()
    assert ensure_buffer(moved).data_ptr() == ensure_buffer(moved).data_ptr()


def course(optimizer: torch.optim.Optimizer, moved: list[nn.Parameter]) -> list[torch.Tensor]:
    for step in range(20):
        for place, weight in enumerate(moved):
            weight.grad = torch.empty_like(weight).copy_(draw(*weight.shape, seed=3 * step + place))
        if step == 10:
            optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step()
    return [weight.detach() for weight in moved]


def test_rmsprop_changes_a_buffer_as_it_changes_its_tensors() -> None:
    plain, buffered = weights(), weights()
    optimizer = deepmind_rmsprop(buffered, **RMSPROP)
    optimizers.accelerate_optimizer(optimizer)
    move_to_buffer(buffered)
    optimizer.found_inf = torch.zeros(())
    expected = course(deepmind_rmsprop(plain, **RMSPROP), plain)
    assert all(map(torch.equal, course(optimizer, buffered), expected))
    for name in ("mean", "mean_square"):
        assert find_buffer([optimizer.state[weight][name] for weight in buffered]) is not None


def test_rmsprop_changes_weights_one_by_one_if_a_gradient_lies_differently() -> None:
    plain, buffered = weights()[:1], weights()[:1]
    move_to_buffer(buffered)
    for moved, make in ((plain, deepmind_rmsprop), (buffered, fast_rmsprop)):
        optimizer = make(moved, **RMSPROP)
        moved[0].grad = draw(2, 3, 3, 3)  # not channels-last
        optimizer.step()
    torch.testing.assert_close(plain[0], buffered[0])


def fast_rmsprop(parameters: list[nn.Parameter], **values: float) -> DeepMindRMSProp:
    optimizer = deepmind_rmsprop(parameters, **values)
    optimizers.accelerate_optimizer(optimizer)
    optimizer.found_inf = torch.zeros(())
    return optimizer


def test_clipping_a_buffer_gives_pytorchs_norm_and_gradients() -> None:
    ours, theirs = weights(), weights()
    for moved in (ours, theirs):
        for weight in moved:
            weight.grad = torch.ones_like(weight)
    norm = optimizers.clip_in_buffer([weight.grad for weight in ours], 0.5)
    expected = nn.utils.clip_grad_norm_(theirs, 0.5)
    torch.testing.assert_close(norm, expected)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)
