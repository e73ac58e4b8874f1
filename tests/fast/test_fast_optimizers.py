"""Fast optimizers where they differ from the plain ones: pieces, flags of a device, layouts in memory."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from without_kernels import either_way

from atari_dqn.agent import optimizers as plain
from atari_dqn.fast.cpu.factored import FactoredGradient
from atari_dqn.fast.optimizers import (
    BLOCK_WEIGHTS,
    accelerate_optimizer,
    step_and_take_back,
    step_by_flag,
)

__all__ = ["either_way"]

RMSPROP = {"learning_rate": 0.00025, "epsilon": 0.01, "gradient_decay": 0.95, "squared_gradient_decay": 0.9}
ADAM = {"learning_rate": 0.01, "epsilon": 1.5e-4, "beta1": 0.9, "beta2": 0.99}
TORCH_RMSPROP = {"learning_rate": 0.01, "epsilon": 1e-3, "smoothing": 0.9, "momentum": 0.5}


def fast(make, parameters, **values):
    optimizer = make(parameters, **values)
    accelerate_optimizer(optimizer)
    return optimizer


deepmind_rmsprop, adam = partial(fast, plain.deepmind_rmsprop), partial(fast, plain.adam)
torch_rmsprop = plain.torch_rmsprop


def gradients(steps: int = 50) -> np.ndarray:
    draws = np.random.default_rng(0).normal(size=(steps, 5))
    return draws * np.array([1e-4, 0.01, 1.0, 30.0, 0.0])


def follow(optimizer_of, values) -> np.ndarray:
    weights = nn.Parameter(torch.ones(5))
    optimizer = optimizer_of([weights], **values)
    for gradient in gradients():
        weights.grad = torch.tensor(gradient, dtype=torch.float32)
        optimizer.step()
    return weights.detach().double().numpy()


def step_if(optimizer, finite) -> None:
    if finite:
        optimizer.step()


NOISE = (torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 3.0]))
WAYS = [(step_by_flag, deepmind_rmsprop, RMSPROP), (step_by_flag, adam, ADAM),
        (step_and_take_back, torch_rmsprop, TORCH_RMSPROP), (step_and_take_back, adam, ADAM)]  # fmt: skip


def moments(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [tensor for state in optimizer.state.values() for tensor in state.values()]


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same numbers, the other way round in memory."""
    return tensor.T.contiguous().T


def test_rmsprop_moves_a_large_layer_in_pieces_as_it_moves_a_small_one() -> None:
    count = BLOCK_WEIGHTS + 3  # two pieces, one of them short
    gradient = torch.from_numpy(np.random.default_rng(0).normal(size=(count, 1))).float()
    large = nn.Parameter(torch.ones(count, 1))
    small = [nn.Parameter(torch.ones(count // 2, 1)), nn.Parameter(torch.ones(count - count // 2, 1))]
    optimizer = deepmind_rmsprop([large, *small], **RMSPROP)
    for _ in range(3):
        large.grad, small[0].grad, small[1].grad = gradient, gradient[: count // 2], gradient[count // 2 :]
        optimizer.step()
    assert torch.equal(large, torch.cat(small))


def test_rmsprop_moves_a_large_channels_last_layer_as_it_moves_any_other() -> None:
    shape = (BLOCK_WEIGHTS // 9 // 64 + 1, 64, 3, 3)
    gradient = torch.from_numpy(np.random.default_rng(0).normal(size=shape)).float()
    plain = nn.Parameter(torch.ones(shape))
    last = nn.Parameter(torch.ones(shape).to(memory_format=torch.channels_last))
    optimizer = deepmind_rmsprop([plain, last], **RMSPROP)
    for _ in range(3):
        plain.grad, last.grad = gradient, gradient.to(memory_format=torch.channels_last)
        optimizer.step()
    assert torch.equal(plain, last)


@pytest.mark.parametrize("found_inf", [None, 0.0], ids=["by the kernel", "with found_inf"])
def test_rmsprop_of_one_gradient_repeated_stays_finite(found_inf: float | None) -> None:
    # rounding makes n − g² negative, for some of these gradients by more than ε
    weight = nn.Parameter(torch.zeros(2_000))
    optimizer = deepmind_rmsprop([weight], **RMSPROP | {"epsilon": 1.5e-7, "squared_gradient_decay": 0.95})
    optimizer.found_inf = None if found_inf is None else torch.tensor(found_inf)
    for _ in range(300):
        weight.grad = torch.logspace(-2, 3, 2_000)
        optimizer.step()
    assert weight.isfinite().all()


@pytest.mark.fault("D03", "P14")
@pytest.mark.parametrize(("optimizer_of", "values"), [(deepmind_rmsprop, RMSPROP), (adam, ADAM)])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1.0])
def test_step_with_found_inf_changes_nothing(optimizer_of, values, bad: float) -> None:
    weights = nn.Parameter(torch.ones(5))
    optimizer = optimizer_of([weights], **values)
    weights.grad = torch.tensor(gradients()[0], dtype=torch.float32)
    optimizer.step()
    before = [tensor.clone() for tensor in (weights.detach(), *moments(optimizer))]
    weights.grad[2] = bad
    optimizer.found_inf = torch.ones(())
    optimizer.step()
    after = [weights.detach(), *moments(optimizer)]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize(("optimizer_of", "values"), [(deepmind_rmsprop, RMSPROP), (adam, ADAM)])
def test_step_without_found_inf_is_the_plain_step_to_the_bit(optimizer_of, values) -> None:
    def watched(parameters, **given):
        optimizer = optimizer_of(parameters, **given)
        optimizer.found_inf = torch.zeros(())
        return optimizer

    assert follow(watched, values).tolist() == follow(optimizer_of, values).tolist()


@pytest.mark.fault("D03")
@pytest.mark.parametrize(("step", "optimizer_of", "values"), WAYS)
def test_ways_to_step_that_wait_for_no_gpu_end_where_looking_first_does(step, optimizer_of, values) -> None:
    ends = []
    for way in (step_if, step):
        weights = nn.Parameter(torch.ones(5))
        optimizer = optimizer_of([weights], **values)
        for finite in (False, True, True, False, True):  # the first step of all, too
            weights.grad = torch.tensor(gradients()[0], dtype=torch.float32)
            if not finite:
                weights.grad[1] = float("nan")
            way(optimizer, torch.tensor(finite))
        ends.append([weights.detach(), *[value for value in moments(optimizer) if value.dim()]])
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("make", "values", "names"),
    [(deepmind_rmsprop, RMSPROP, ("mean", "mean_square")), (adam, ADAM, ("exp_avg", "exp_avg_sq"))],
)
def test_averages_that_lie_otherwise_in_memory_move_a_weight_alike(make, values, names) -> None:
    results = []
    for lay in (torch.clone, transposed):
        weight = nn.Parameter(torch.ones(2, 3))
        optimizer = make([weight], **values)
        weight.grad = torch.arange(6.0).view(2, 3)
        optimizer.step()
        optimizer.state[weight].update({name: lay(optimizer.state[weight][name]) for name in names})
        optimizer.step()
        results.append(weight.detach().clone())
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("noise", [None, NOISE], ids=["plain", "noisy"])
def test_adam_writes_out_a_gradient_where_another_lies_otherwise_in_memory(noise) -> None:
    x, upstream = torch.arange(12.0).view(4, 3), torch.arange(8.0).view(4, 2) - 3.0
    written = (
        [upstream.T @ x] if noise is None else [upstream.T @ x, upstream.T @ x * torch.outer(*NOISE[::-1])]
    )
    moved = []
    for is_factored in (False, True):
        other, *weights = (nn.Parameter(torch.ones(2, 3)) for _ in range(1 + len(written)))
        optimizer = adam([other, *weights], **ADAM)
        other.grad = transposed(torch.arange(6.0).view(2, 3))
        if is_factored:
            optimizer.unwritten.append(FactoredGradient(tuple(weights), x, upstream, noise))
        else:
            for weight, gradient in zip(weights, written, strict=True):
                weight.grad = gradient
        optimizer.step()
        moved.append(torch.stack([other, *weights]).detach())
    torch.testing.assert_close(*moved, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("options", [{"weight_decay": 0.1}, {"amsgrad": True}, {"maximize": True}], ids=str)
def test_adam_with_options_that_the_kernel_does_not_compute_stays_pytorchs(options: dict[str, float]) -> None:
    ends = []
    for is_fast in (False, True):
        weight = nn.Parameter(torch.ones(4))
        optimizer = torch.optim.Adam([weight], lr=0.1, fused=True, **options)
        assert not (is_fast and accelerate_optimizer(optimizer))
        for factor in (1.0, -0.5, 0.1):
            weight.grad = torch.full((4,), factor)
            optimizer.step()
        ends.append(weight.detach())
    assert torch.equal(*ends)


def test_adam_of_two_groups_of_weights_stays_pytorchs() -> None:
    weights = [nn.Parameter(torch.ones(4)) for _ in range(2)]
    groups = [{"params": [weight], "lr": rate} for weight, rate in zip(weights, (0.1, 0.2), strict=True)]
    optimizer = torch.optim.Adam(groups, fused=True)
    assert not accelerate_optimizer(optimizer)
    for weight in weights:
        weight.grad = torch.ones(4)
    optimizer.step()
    assert [round(weight[0].item(), 4) for weight in weights] == [0.9, 0.8]


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.AdamW])
def test_fused_step_of_another_optimizer_is_counted_as_a_change_of_its_weights(make: type) -> None:
    weight = nn.Parameter(torch.ones(4))
    optimizer = make([weight], lr=0.1, fused=True)
    accelerate_optimizer(optimizer)
    weight.grad, before = torch.ones(4), weight._version
    optimizer.step()
    assert weight._version > before
