"""The optimizer's kernels against what they stand in for."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
import torch
from kernel_checks import threads
from torch import nn
from without_kernels import leave_to_torch

from atari_dqn.agent.optimizers import adam, deepmind_rmsprop
from atari_dqn.fast.cpu.library import library
from atari_dqn.fast.optimizers import accelerate_optimizer, gradient_norm, is_readable

pytestmark = pytest.mark.skipif(library("portable") is None, reason="no kernels of our own on this machine")

SHAPES = [(5,), (64, 32, 4, 4), (513, 70), (40_000,), (1,)]


def gradients() -> list[torch.Tensor]:
    torch.manual_seed(0)
    drawn = [torch.randn(shape) * 10.0**-place for place, shape in enumerate(SHAPES)]
    drawn[1] = drawn[1].contiguous(memory_format=torch.channels_last)
    return drawn


Make = Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]
MAKES: dict[str, Make] = {
    "rmsprop": partial(
        deepmind_rmsprop, learning_rate=0.01, epsilon=0.01, gradient_decay=0.95, squared_gradient_decay=0.9
    ),
    "adam": partial(adam, learning_rate=0.01, epsilon=0.001, beta1=0.9, beta2=0.99),
}
EACH_OPTIMIZER = pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)


def moved(make: Make, weights: Sequence[torch.Tensor], of_each: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Compute five steps by multiples of gradients, from weights."""
    moving = [nn.Parameter(weight.clone()) for weight in weights]
    optimizer = make(moving)
    accelerate_optimizer(optimizer)
    for factor in (-2, -1, 0, 1, 2):
        for weight, gradient in zip(moving, of_each, strict=True):
            weight.grad = gradient * factor
        optimizer.step()
    return [weight.detach() for weight in moving]


@EACH_OPTIMIZER
def test_fast_optimizer_has_the_state_of_the_plain_one_and_moves_as_it_does(make: Make) -> None:
    ends = []
    for is_fast in (False, True):
        weight = nn.Parameter(torch.ones(40, 7))
        optimizer = make([weight])
        assert not is_fast or accelerate_optimizer(optimizer)
        for place in range(5):
            weight.grad = torch.linspace(-1, 1, 280).view(40, 7) * place
            optimizer.step()
        ends.append((weight.detach(), optimizer.state_dict()))
    torch.testing.assert_close(ends[1][0], ends[0][0], rtol=1e-5, atol=1e-6)
    (one,), (other,) = (state["param_groups"] for _, state in ends)
    assert one == other
    assert ends[0][1]["state"][0].keys() == ends[1][1]["state"][0].keys()


def ones() -> list[torch.Tensor]:
    return [torch.ones_like(gradient) for gradient in gradients()]


@EACH_OPTIMIZER
def test_fused_step_equals_the_step_by_pytorchs_operations(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = moved(make, ones(), gradients())
    leave_to_torch(monkeypatch)
    for one, other in zip(ours, moved(make, ones(), gradients()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@EACH_OPTIMIZER
def test_gradient_that_lies_otherwise_in_memory_moves_a_weight_alike(make: Make) -> None:
    weight, gradient = ones()[1], gradients()[1]
    assert gradient.stride() != gradient.contiguous().stride()
    (expected,) = moved(make, [weight], [gradient])
    (found,) = moved(make, [weight], [gradient.contiguous()])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@EACH_OPTIMIZER
@pytest.mark.parametrize("by_torch", [False, True])
def test_step_raises_torchs_count_of_changes(
    make: Make, by_torch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # by which layers know that a rounded copy of a weight is stale
    if by_torch:
        leave_to_torch(monkeypatch)
    weight = nn.Parameter(torch.ones(5))
    optimizer = make([weight])
    accelerate_optimizer(optimizer)
    weight.grad, before = torch.ones(5), weight._version
    optimizer.step()
    assert weight._version > before


def test_norm_is_that_in_double_precision() -> None:
    exact = torch.cat([gradient.double().flatten() for gradient in gradients()]).norm()
    torch.testing.assert_close(gradient_norm(gradients()).double(), exact, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_norm_of_what_is_not_finite_is_not(value: float) -> None:
    drawn = gradients()
    drawn[2][-1, -1] = value
    assert not gradient_norm(drawn).isfinite()


@EACH_OPTIMIZER
def test_bits_are_the_same_with_any_number_of_threads(make: Make) -> None:
    found = []
    for count in (1, 2, 3):
        with threads(count):
            found.append([gradient_norm(gradients()), *moved(make, ones(), gradients())])
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


def test_tensors_with_gaps_between_their_values_are_left_to_torch() -> None:
    strided = torch.randn(8, 10)[:, :5]
    assert not is_readable(strided)
    torch.testing.assert_close(gradient_norm([strided]).double(), strided.double().norm(), rtol=1e-6, atol=0)
