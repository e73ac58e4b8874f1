"""Copies of weights in another format: made again when a weight has changed, by one rule."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from atari_dqn.agent.optimizers import adam, deepmind_rmsprop, torch_rmsprop
from atari_dqn.fast.low_precision import LowPrecisionWeight
from atari_dqn.fast.optimizers import accelerate_optimizer

BF16 = torch.bfloat16
ADAM = {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
RMSPROP = {"learning_rate": 0.1, "gradient_decay": 0.9, "squared_gradient_decay": 0.9, "epsilon": 0.01}
TORCH_RMSPROP = {"learning_rate": 0.1, "smoothing": 0.9, "momentum": 0.0, "epsilon": 0.01}


def weight(size: int = 12) -> nn.Parameter:
    return nn.Parameter(torch.linspace(-1.0, 1.0, size))


def step(
    optimizer: Callable[..., torch.optim.Optimizer], values: dict[str, float]
) -> Callable[[nn.Parameter], None]:
    def change(w: nn.Parameter) -> None:
        w.grad = torch.ones_like(w)
        moving = optimizer([w], **values)
        accelerate_optimizer(moving)
        moving.step()

    return change


def load(w: nn.Parameter) -> None:
    holder = nn.Module()
    holder.weight = w
    holder.load_state_dict({"weight": torch.zeros_like(w)})


def copy_without_gradient(w: nn.Parameter) -> None:
    with torch.no_grad():
        w.copy_(torch.zeros_like(w))


CHANGES = {
    "adam": step(adam, ADAM),
    "deepmind_rmsprop": step(deepmind_rmsprop, RMSPROP),
    "torch_rmsprop": step(torch_rmsprop, TORCH_RMSPROP),
    "a state that is loaded": load,
    "a copy": copy_without_gradient,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_copy_of_a_weight_follows_every_way_to_change_it(change: Callable[[nn.Parameter], None]) -> None:
    w, rounded = weight(), LowPrecisionWeight()
    before = rounded.of(w, BF16).clone()
    change(w)
    assert not torch.equal(rounded.of(w, BF16), before)
    assert torch.equal(rounded.of(w, BF16), w.detach().to(BF16))


def test_copy_follows_an_optimizer_that_moves_a_large_weight_in_pieces() -> None:
    w, rounded = weight(2**18 + 1), LowPrecisionWeight()
    rounded.of(w, BF16)
    step(deepmind_rmsprop, RMSPROP)(w)
    assert torch.equal(rounded.of(w, BF16), w.detach().to(BF16))


def test_other_weight_at_the_same_address_with_an_equal_count_is_not_taken_for_the_first() -> None:
    memory, rounded = torch.ones(12), LowPrecisionWeight()
    w = nn.Parameter(memory)
    rounded.of(w, BF16)
    place = (w.data_ptr(), w._version)
    del w
    memory.numpy().fill(2.0)  # uncounted
    other = nn.Parameter(memory)
    assert (other.data_ptr(), other._version) == place
    assert torch.equal(rounded.of(other, BF16), torch.full((12,), 2.0, dtype=BF16))


def test_weight_that_did_not_change_is_rounded_once() -> None:
    w, rounded = weight(), LowPrecisionWeight()
    assert rounded.of(w, BF16).data_ptr() == rounded.of(w, BF16).data_ptr()


def test_weight_in_its_own_format_is_not_copied() -> None:
    w = weight()
    assert LowPrecisionWeight().of(w, torch.float32).data_ptr() == w.data_ptr()


def test_copied_layer_forgets_what_the_original_knew() -> None:
    w, rounded = weight(), LowPrecisionWeight()
    rounded.of(w, BF16)
    other, theirs = copy.deepcopy((w, rounded))
    with torch.no_grad():
        while other._version < w._version:
            other.add_(1.0)
        other.add_(1.0)
    assert torch.equal(theirs.of(other, BF16), other.detach().to(BF16))


def test_scale_multiplies_weight_and_gradient() -> None:
    w, half = weight(), LowPrecisionWeight(0.5)
    assert torch.equal(half.of(w, torch.float32), w.detach() * 0.5)
    assert torch.equal(half.gradient(torch.ones(12), w), torch.full((12,), 0.5))


def test_copy_made_while_acting_serves_learning() -> None:
    w, rounded = weight(), LowPrecisionWeight()
    with torch.inference_mode():
        rounded.of(w, BF16)
    assert not rounded.of(w, BF16).is_inference()


def test_change_through_data_is_not_counted_and_the_next_counted_one_is() -> None:
    # the rule: weights are changed under torch.no_grad(), or acceleration is asked for again
    w, cached = weight(2), LowPrecisionWeight()
    cached.of(w, BF16)
    w.data.fill_(3.0)
    assert cached.of(w, BF16).tolist() == [-1.0, 1.0]
    with torch.no_grad():
        w.add_(1.0)
    assert cached.of(w, BF16).tolist() == [4.0, 4.0]
