import copy

import numpy as np
import pytest
import torch
from torch import nn
from without_kernels import either_way

from atari_dqn.agent.optimizers import (
    BLOCK_WEIGHTS,
    adam,
    deepmind_rmsprop,
    load_optimizer,
    step_and_take_back,
    step_by_flag,
    step_if,
    torch_rmsprop,
)
from atari_dqn.fast.cpu.factored import FactoredGradient

__all__ = ["either_way"]

RMSPROP = {
    "learning_rate": 0.00025,
    "epsilon": 0.01,
    "gradient_decay": 0.95,
    "squared_gradient_decay": 0.9,  # not the gradient's, so that neither stands for the other
}
ADAM = {"learning_rate": 0.01, "epsilon": 1.5e-4, "beta1": 0.9, "beta2": 0.99}
TORCH_RMSPROP = {"learning_rate": 0.01, "epsilon": 1e-3, "smoothing": 0.9, "momentum": 0.5}


def gradients(steps: int = 50) -> np.ndarray:
    draws = np.random.default_rng(0).normal(size=(steps, 5))
    return draws * np.array([1e-4, 0.01, 1.0, 30.0, 0.0])


def follow(optimizer_of, values, steps: int = 50, sizes=None) -> np.ndarray:
    weights = nn.Parameter(torch.ones(5))
    optimizer = optimizer_of([weights], **values)
    for gradient in gradients(steps) if sizes is None else sizes:
        weights.grad = torch.tensor(gradient, dtype=torch.float32)
        optimizer.step()
    return weights.detach().double().numpy()


def test_rmsprop_follows_the_lua_codes_formula_in_double_precision() -> None:
    weights, mean, mean_square = np.ones(5), np.zeros(5), np.zeros(5)
    for gradient in gradients():
        mean = 0.95 * mean + 0.05 * gradient
        mean_square = 0.9 * mean_square + 0.1 * gradient**2
        weights = weights - 0.00025 * gradient / np.sqrt(mean_square - mean**2 + 0.01)
    np.testing.assert_allclose(follow(deepmind_rmsprop, RMSPROP), weights, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("decays", "steps_to_nan"),
    # with steady gradients of 1 n − g² is (1 − ρ₂ᵗ) − (1 − ρ₁ᵗ)²; of (0.5, 0.95) it is 0.05 − 0.25 at once
    [((0.5, 0.95), 1), ((0.9, 0.95), 9), ((0.95, 0.95), None), ((1.0, 0.5), None)],
)
def test_root_is_of_a_negative_number_only_where_decays_differ(
    decays: tuple[float, float], steps_to_nan: int | None
) -> None:
    weight = nn.Parameter(torch.zeros(1))
    values = {"gradient_decay": decays[0], "squared_gradient_decay": decays[1]}
    optimizer = deepmind_rmsprop([weight], learning_rate=0.01, epsilon=1e-6, **values)
    found = None
    for step in range(1, 200):
        weight.grad = torch.ones(1)
        optimizer.step()
        if found is None and weight.isnan():
            found = step
    assert found == steps_to_nan


@pytest.mark.usefixtures("either_way")
def test_dok_rmsprops_epsilon_lies_inside_the_root() -> None:
    # first step: √(0.1·1 − (0.05·1)² + 0.01) = 0.327872, where √(0.0975) + 0.01 = 0.322250
    moved = 1 - follow(deepmind_rmsprop, RMSPROP | {"learning_rate": 1.0}, sizes=[np.ones(5)])
    np.testing.assert_allclose(moved, 1 / 0.3278719, rtol=1e-6)


def test_rmsprop_of_torch_is_another_rule() -> None:
    theirs = follow(
        lambda parameters, **_: torch.optim.RMSprop(parameters, 0.00025, alpha=0.95, eps=0.01, centered=True),
        {},
    )
    assert np.abs(follow(deepmind_rmsprop, RMSPROP | {"squared_gradient_decay": 0.95}) - theirs).max() > 1e-5


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


def test_rmsprop_stands_still_once_the_gradient_is_zero() -> None:
    pushes = [np.ones(5)] * 10
    pushed = follow(deepmind_rmsprop, RMSPROP, sizes=pushes)
    assert np.array_equal(follow(deepmind_rmsprop, RMSPROP, sizes=[*pushes, np.zeros(5)]), pushed)


def test_P03_rmsprop_of_one_gradient_repeated_stays_finite() -> None:
    # the variance under the root cancels to rounding; ε keeps it positive
    assert np.isfinite(follow(deepmind_rmsprop, RMSPROP, sizes=[np.full(5, 300.0)] * 400)).all()


def test_adam_is_torchs_own() -> None:
    theirs = follow(
        lambda parameters, **_: torch.optim.Adam(parameters, 0.01, betas=(0.9, 0.99), eps=1.5e-4), {}
    )
    np.testing.assert_allclose(follow(adam, ADAM), theirs, rtol=0, atol=1e-6)


def test_torch_rmsprop_is_torchs_own_centred_one() -> None:
    theirs = follow(
        lambda parameters, **_: torch.optim.RMSprop(
            parameters, 0.01, alpha=0.9, eps=1e-3, momentum=0.5, centered=True
        ),
        {},
    )
    np.testing.assert_allclose(follow(torch_rmsprop, TORCH_RMSPROP), theirs, rtol=0, atol=1e-6)


def test_torch_rmsprops_epsilon_lies_beside_the_root() -> None:
    # first step: √(0.1·1 − (0.1·1)²) + 0.001 = 0.3 + 0.001
    moved = 1 - follow(torch_rmsprop, TORCH_RMSPROP | {"learning_rate": 1.0}, sizes=[np.ones(5)])
    np.testing.assert_allclose(moved, 1 / 0.301, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "values"), [(deepmind_rmsprop, RMSPROP), (adam, ADAM), (torch_rmsprop, TORCH_RMSPROP)]
)
def test_loaded_optimizer_goes_on_as_the_saved_one_would(make, values) -> None:
    weights = [nn.Parameter(torch.ones(5)) for _ in range(2)]
    optimizers = [make([weight], **values) for weight in weights]
    for place, gradient in enumerate(gradients(20)):
        if place == 10:
            weights[1].data.copy_(weights[0].data)
            optimizers[1].load_state_dict(copy.deepcopy(optimizers[0].state_dict()))
        for weight, optimizer in zip(weights, optimizers, strict=True):
            if optimizer is optimizers[0] or place >= 10:
                weight.grad = torch.tensor(gradient, dtype=torch.float32)
                optimizer.step()
    assert torch.equal(weights[0], weights[1])


def test_parameter_without_gradient_stays() -> None:
    moved, still = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = deepmind_rmsprop([moved, still], **RMSPROP)
    moved.grad = torch.ones(2)
    optimizer.step()
    assert still.tolist() == [1.0, 1.0]
    assert moved.tolist() != [1.0, 1.0]


def moments(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [tensor for state in optimizer.state.values() for tensor in state.values()]


@pytest.mark.parametrize(("optimizer_of", "values"), [(deepmind_rmsprop, RMSPROP), (adam, ADAM)])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1.0])
def test_D03_step_with_found_inf_changes_nothing(optimizer_of, values, bad: float) -> None:
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


WAYS = [(step_by_flag, deepmind_rmsprop, RMSPROP), (step_by_flag, adam, ADAM),
        (step_and_take_back, torch_rmsprop, TORCH_RMSPROP), (step_and_take_back, adam, ADAM)]  # fmt: skip


@pytest.mark.parametrize(("step", "optimizer_of", "values"), WAYS)
def test_D03_ways_to_step_that_wait_for_no_gpu_end_where_looking_first_does(
    step, optimizer_of, values
) -> None:
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


@pytest.mark.parametrize("optimizer_of", [adam, torch_rmsprop])
def test_loaded_optimizer_does_not_take_over_what_was_of_the_other_device(optimizer_of) -> None:
    values = ADAM if optimizer_of is adam else TORCH_RMSPROP
    saved, loaded = (optimizer_of([nn.Parameter(torch.ones(2))], **values) for _ in range(2))
    state = saved.state_dict()
    state["param_groups"][0]["capturable"] = True  # as a GPU's has it
    load_optimizer(loaded, state)
    assert loaded.param_groups[0]["capturable"] is False


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(("make", "values"), [(deepmind_rmsprop, RMSPROP), (adam, ADAM)])
def test_step_without_any_gradient_moves_nothing(make, values: dict[str, float]) -> None:
    weight = nn.Parameter(torch.ones(5))
    make([weight], **values).step()
    assert weight.tolist() == [1.0] * 5


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same numbers, the other way round in memory."""
    return tensor.T.contiguous().T


@pytest.mark.usefixtures("either_way")
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


NOISE = (torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 3.0]))


@pytest.mark.usefixtures("either_way")
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
            optimizer.factored.append(FactoredGradient(tuple(weights), x, upstream, noise))
        else:
            for weight, gradient in zip(weights, written, strict=True):
                weight.grad = gradient
        optimizer.step()
        moved.append(torch.stack([other, *weights]).detach())
    torch.testing.assert_close(*moved, rtol=1e-6, atol=1e-7)
