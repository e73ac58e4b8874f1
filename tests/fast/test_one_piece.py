"""Tensors that are moved into one piece of memory keep values and layouts, and are found again."""

import torch
from torch import nn

from atari_dqn.agent.optimizers import DeepMindRMSProp, deepmind_rmsprop
from atari_dqn.fast import optimizers
from atari_dqn.fast.one_piece import ALIGNMENT, as_one_piece, lay_in_one_piece, piece_of

RMSPROP = {"learning_rate": 0.01, "epsilon": 0.01, "gradient_decay": 0.95, "squared_gradient_decay": 0.9}


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def weights() -> list[nn.Parameter]:
    """Return a channels-last convolution's, a matrix and a bias, whose sizes are no multiples of anything."""
    convolution = draw(2, 3, 3, 3).to(memory_format=torch.channels_last)
    return [nn.Parameter(tensor) for tensor in (convolution, draw(5, 7), draw(7))]


def test_moved_tensors_keep_values_and_strides() -> None:
    moved, before = weights(), weights()
    lay_in_one_piece(moved)
    for one, other in zip(moved, before, strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_change_of_a_piece_changes_its_tensors() -> None:
    moved, before = weights(), weights()
    lay_in_one_piece(moved).mul_(2)
    assert all(torch.equal(one, 2 * other) for one, other in zip(moved, before, strict=True))


def test_each_tensor_begins_at_an_aligned_place() -> None:
    moved = weights()
    piece = lay_in_one_piece(moved)
    assert [tensor.storage_offset() % ALIGNMENT for tensor in moved] == [0, 0, 0]
    assert len(piece) % ALIGNMENT == 0


def test_piece_is_found_again() -> None:
    moved = weights()
    piece, found = lay_in_one_piece(moved), piece_of(moved)
    assert found is not None
    assert (found.data_ptr(), len(found)) == (piece.data_ptr(), len(piece))


def test_tensors_that_lie_apart_or_in_another_order_are_no_piece() -> None:
    apart, moved = weights(), weights()
    lay_in_one_piece(moved)
    assert piece_of(apart) is None
    assert piece_of(moved[::-1]) is None
    assert piece_of([moved[0], moved[2]]) is None


def test_tensors_at_the_end_of_a_shorter_memory_are_no_piece() -> None:
    assert piece_of([torch.zeros(ALIGNMENT - 1)]) is None


def test_tensors_are_moved_only_once() -> None:
    moved = weights()
    assert as_one_piece(moved).data_ptr() == as_one_piece(moved).data_ptr()


def course(optimizer: torch.optim.Optimizer, moved: list[nn.Parameter]) -> list[torch.Tensor]:
    for step in range(20):
        for place, weight in enumerate(moved):
            weight.grad = torch.empty_like(weight).copy_(draw(*weight.shape, seed=3 * step + place))
        if step == 10:
            optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step()
    return [weight.detach() for weight in moved]


def test_rmsprop_moves_a_piece_as_it_moves_its_tensors() -> None:
    plain, pieces = weights(), weights()
    optimizer = deepmind_rmsprop(pieces, **RMSPROP)
    optimizers.accelerate_optimizer(optimizer)
    lay_in_one_piece(pieces)
    optimizer.found_inf = torch.zeros(())
    expected = course(deepmind_rmsprop(plain, **RMSPROP), plain)
    assert all(map(torch.equal, course(optimizer, pieces), expected))
    for name in ("mean", "mean_square"):
        assert piece_of([optimizer.state[weight][name] for weight in pieces]) is not None


def test_rmsprop_moves_weights_one_by_one_if_a_gradient_lies_differently() -> None:
    plain, pieces = weights()[:1], weights()[:1]
    lay_in_one_piece(pieces)
    for moved, make in ((plain, deepmind_rmsprop), (pieces, fast_rmsprop)):
        optimizer = make(moved, **RMSPROP)
        moved[0].grad = draw(2, 3, 3, 3)  # not channels-last
        optimizer.step()
    torch.testing.assert_close(plain[0], pieces[0])


def fast_rmsprop(parameters: list[nn.Parameter], **values: float) -> DeepMindRMSProp:
    optimizer = deepmind_rmsprop(parameters, **values)
    optimizers.accelerate_optimizer(optimizer)
    optimizer.found_inf = torch.zeros(())
    return optimizer


def test_clipping_a_piece_gives_pytorchs_norm_and_gradients() -> None:
    ours, theirs = weights(), weights()
    for moved in (ours, theirs):
        for weight in moved:
            weight.grad = torch.ones_like(weight)
    norm = optimizers.clip_in_one_piece([weight.grad for weight in ours], 0.5)
    expected = nn.utils.clip_grad_norm_(theirs, 0.5)
    torch.testing.assert_close(norm, expected)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)
