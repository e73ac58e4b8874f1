import copy

import numpy as np
import pytest
import torch
from torch import nn

from atari_dqn.agent.optimizer_state import load_optimizer
from atari_dqn.agent.optimizers import adam, deepmind_rmsprop, radam, torch_rmsprop

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
    ("decays", "steps_to_negative"),
    # with steady gradients of 1 n − g² is (1 − ρ₂ᵗ) − (1 − ρ₁ᵗ)²; of (0.5, 0.95) it is 0.05 − 0.25 at once
    [((0.5, 0.95), 1), ((0.9, 0.95), 9), ((0.95, 0.95), None), ((1.0, 0.5), None)],
)
def test_variance_is_negative_beyond_rounding_only_where_decays_differ(
    decays: tuple[float, float], steps_to_negative: int | None
) -> None:
    weight = nn.Parameter(torch.zeros(1))
    values = {"gradient_decay": decays[0], "squared_gradient_decay": decays[1]}
    optimizer = deepmind_rmsprop([weight], learning_rate=0.01, epsilon=1e-6, **values)
    found = None
    for step in range(1, 200):
        weight.grad = torch.ones(1)
        optimizer.step()
        g, n = (optimizer.state[weight][name] for name in ("mean", "mean_square"))
        if found is None and n - g.square() < -1e-6:
            found = step
    assert found == steps_to_negative


def test_radam_follows_its_papers_formula_in_double_precision() -> None:
    # Liu et al. (2020), Algorithm 2; ε is added to √v before the correction of its bias
    beta1, beta2, rate, epsilon = 0.9, 0.99, 0.01, 1.5e-4
    weights, mean, square, longest = np.ones(5), np.zeros(5), np.zeros(5), 2 / (1 - beta2) - 1
    rectified = 0
    for t, gradient in enumerate(gradients(), start=1):
        mean = beta1 * mean + (1 - beta1) * gradient
        square = beta2 * square + (1 - beta2) * gradient**2
        corrected = mean / (1 - beta1**t)
        length = longest - 2 * t * beta2**t / (1 - beta2**t)
        if length > 5:
            rectified += 1
            r = np.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            weights -= rate * r * corrected * np.sqrt(1 - beta2**t) / (np.sqrt(square) + epsilon)
        else:
            weights -= rate * corrected
    assert 40 < rectified < 50
    np.testing.assert_allclose(follow(radam, ADAM), weights, rtol=1e-5, atol=1e-5)


@pytest.mark.fault("D-ok.rmsprop")
def test_rmsprops_epsilon_lies_inside_the_root() -> None:
    # first step: √(0.1·1 − (0.05·1)² + 0.01) = 0.327872, where √(0.0975) + 0.01 = 0.322250
    moved = 1 - follow(deepmind_rmsprop, RMSPROP | {"learning_rate": 1.0}, sizes=[np.ones(5)])
    np.testing.assert_allclose(moved, 1 / 0.3278719, rtol=1e-6)


def test_rmsprop_of_torch_is_another_rule() -> None:
    theirs = follow(
        lambda parameters, **_: torch.optim.RMSprop(parameters, 0.00025, alpha=0.95, eps=0.01, centered=True),
        {},
    )
    assert np.abs(follow(deepmind_rmsprop, RMSPROP | {"squared_gradient_decay": 0.95}) - theirs).max() > 1e-5


def test_rmsprop_stands_still_once_the_gradient_is_zero() -> None:
    pushes = [np.ones(5)] * 10
    pushed = follow(deepmind_rmsprop, RMSPROP, sizes=pushes)
    assert np.array_equal(follow(deepmind_rmsprop, RMSPROP, sizes=[*pushes, np.zeros(5)]), pushed)


@pytest.mark.fault("P03")
@pytest.mark.parametrize("epsilon", [0.01, 1.5e-7])
def test_rmsprop_of_one_gradient_repeated_stays_finite(epsilon: float) -> None:
    # rounding makes n − g² negative, for some of these gradients by more than ε
    gradient = torch.logspace(-2, 3, 2_000)
    weight = nn.Parameter(torch.zeros(2_000))
    values = RMSPROP | {"epsilon": epsilon, "squared_gradient_decay": 0.95}
    optimizer = deepmind_rmsprop([weight], **values)
    for _ in range(300):
        weight.grad = gradient.clone()
        optimizer.step()
    assert weight.isfinite().all()


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


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_torch_rmsprop_is_torchs_own_to_the_last_bit(momentum: float) -> None:
    theirs = follow(
        lambda parameters, **_: torch.optim.RMSprop(
            parameters, 0.01, alpha=0.9, eps=1e-3, momentum=momentum, centered=True, foreach=True
        ),
        {},
    )
    assert np.isfinite(theirs).all()
    assert np.array_equal(follow(torch_rmsprop, TORCH_RMSPROP | {"momentum": momentum}), theirs)


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-4, 1e-3])
def test_torch_rmsprop_stays_finite_where_gradients_hardly_change(noise: float) -> None:
    # rounding makes n − g² negative
    stream = np.random.default_rng(0)
    gradient = stream.normal(size=1_000)
    weight = nn.Parameter(torch.zeros(1_000))
    optimizer = torch_rmsprop([weight], learning_rate=2.5e-4, smoothing=0.95, momentum=0.0, epsilon=1e-5)
    for _ in range(300):
        weight.grad = torch.tensor(gradient * (1 + noise * stream.normal(size=1_000)), dtype=torch.float32)
        optimizer.step()
    assert weight.isfinite().all()


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_state_of_torch_rmsprop_has_the_format_of_torchs_own(momentum: float) -> None:
    states = []
    for make in (torch_rmsprop, lambda weights, **_: torch.optim.RMSprop(
        weights, 0.01, alpha=0.9, eps=1e-3, momentum=momentum, centered=True, foreach=True
    )):  # fmt: skip
        weight = nn.Parameter(torch.ones(5))
        optimizer = make([weight], **TORCH_RMSPROP | {"momentum": momentum})
        weight.grad = torch.ones(5)
        optimizer.step()
        states.append(optimizer.state_dict())
    ours, theirs = states
    assert ours["param_groups"] == theirs["param_groups"]
    assert ours["state"][0].keys() == theirs["state"][0].keys()
    assert all(torch.equal(ours["state"][0][name], value) for name, value in theirs["state"][0].items())


def test_torch_rmsprops_epsilon_is_outside_the_root() -> None:
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


@pytest.mark.parametrize("optimizer_of", [adam, torch_rmsprop])
def test_loaded_optimizer_does_not_take_over_what_was_of_the_other_device(optimizer_of) -> None:
    values = ADAM if optimizer_of is adam else TORCH_RMSPROP
    saved, loaded = (optimizer_of([nn.Parameter(torch.ones(2))], **values) for _ in range(2))
    state = saved.state_dict()
    state["param_groups"][0]["capturable"] = True  # as a GPU's has it
    load_optimizer(loaded, state)
    assert loaded.param_groups[0]["capturable"] is False


@pytest.mark.parametrize(("make", "values"), [(deepmind_rmsprop, RMSPROP), (adam, ADAM)])
def test_step_without_any_gradient_moves_nothing(make, values: dict[str, float]) -> None:
    weight = nn.Parameter(torch.ones(5))
    make([weight], **values).step()
    assert weight.tolist() == [1.0] * 5


def test_loaded_averages_lie_in_memory_as_their_weight_does() -> None:
    weight = nn.Parameter(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last))
    saved, loaded = adam([weight], **ADAM), adam([weight], **ADAM)
    weight.grad = torch.ones_like(weight)
    saved.step()
    state = copy.deepcopy(saved.state_dict())
    state["state"][0]["exp_avg"] = state["state"][0]["exp_avg"].contiguous()
    load_optimizer(loaded, state)
    assert loaded.state[weight]["exp_avg"].stride() == weight.stride()
    assert torch.equal(loaded.state[weight]["exp_avg"], saved.state[weight]["exp_avg"])
