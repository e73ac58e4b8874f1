"""Rules of distributions: by hand, by published vectors, and by plain loops in double precision."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atari_dqn.agent.rules import (
    bellman_target,
    categorical_projection,
    gather_q,
    kl_divergence,
    munchausen_bonus,
    quantile_huber,
    scaled_log_policy,
    soft_value,
)

ATOMS = torch.linspace(-10.0, 10.0, 51)


def numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape) * scale).float()


# --- projection on atoms


def test_projection_equals_rlaxs_l2_projection() -> None:
    # rlax, value_learning_test.py, L2ProjectTest
    old = torch.arange(-1, 1, 0.25)
    points = torch.stack([old, old + 1])
    mass = points.clone()
    mass[0, ::2] = 0.0
    mass[1, 1::2] = 0.0
    new = torch.arange(-1, 1, 0.5)
    assert categorical_projection(points[:1], mass[:1], new)[0].tolist() == pytest.approx(
        [-0.375, -0.5, 0.0, 0.875]
    )
    assert categorical_projection(points[1:], mass[1:], new + 1)[0].tolist() == pytest.approx(
        [0.0, 0.5, 1.0, 1.5]
    )


def projected_in_a_loop(points: torch.Tensor, mass: torch.Tensor, atoms: torch.Tensor) -> np.ndarray:
    """Bellemare et al. (2017), Algorithm 1, as it is printed."""
    z, low, high = atoms.double().numpy(), float(atoms[0]), float(atoms[-1])
    spacing = (high - low) / (len(z) - 1)
    found = np.zeros(tuple(mass.shape))
    for row in range(len(mass)):
        for point, weight in zip(points[row].double().tolist(), mass[row].double().tolist(), strict=True):
            b = (min(max(point, low), high) - low) / spacing
            below, above = math.floor(b), math.ceil(b)
            if below == above:
                found[row, below] += weight
            else:
                found[row, below] += weight * (above - b)
                found[row, above] += weight * (b - below)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_projection_equals_the_papers_loop_in_double_precision(seed: int) -> None:
    points = bellman_target(
        numbers(16, seed=seed), numbers(16, seed=seed + 9).abs().clamp(max=1), ATOMS[None]
    )
    mass = numbers(16, 51, seed=seed + 20).softmax(dim=1)
    expected = projected_in_a_loop(points, mass, ATOMS)
    np.testing.assert_allclose(
        categorical_projection(points, mass, ATOMS).numpy(), expected, rtol=0, atol=1e-5
    )


def test_projection_on_the_same_atoms_changes_nothing() -> None:
    mass = numbers(4, 51).softmax(dim=1)
    torch.testing.assert_close(
        categorical_projection(ATOMS.expand(4, -1), mass, ATOMS), mass, rtol=0, atol=1e-6
    )


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.floats(-1, 1, allow_subnormal=False),
    st.floats(0, 0.99, allow_subnormal=False),
    st.integers(0, 1000),
    st.floats(0, 1e4, allow_subnormal=False),
)
def test_projection_keeps_mass_and_inside_the_support_the_mean(r, discount, seed, sharpness) -> None:
    mass = numbers(1, 51, seed=seed, scale=sharpness).softmax(dim=1)
    points = bellman_target(
        torch.tensor([r / 11]), torch.tensor([discount]), ATOMS[None]
    )  # |r| + γ · 10 ≤ 10
    found = categorical_projection(points.float(), mass, ATOMS)
    assert found.min() >= 0
    assert found.sum().item() == pytest.approx(1.0, abs=1e-5)
    if points.abs().max() <= 10:
        assert (found @ ATOMS).item() == pytest.approx((points.float() * mass).sum().item(), abs=1e-4)


def test_mass_outside_of_the_support_goes_to_its_edges() -> None:
    found = categorical_projection(torch.tensor([[-99.0, 0.0, 99.0]]), torch.tensor([[0.2, 0.5, 0.3]]), ATOMS)
    assert [found[0, place].item() for place in (0, 25, 50)] == pytest.approx([0.2, 0.5, 0.3], abs=1e-6)


def test_last_transitions_target_is_all_on_its_reward() -> None:
    points = bellman_target(torch.tensor([0.4]), torch.tensor([0.0]), ATOMS[None])
    found = categorical_projection(points, torch.full((1, 51), 1 / 51), ATOMS)
    assert found[0, 26].item() == pytest.approx(1.0, abs=1e-5)  # the atom at 0.4


# --- the categorical loss

LOGITS_TM1 = torch.tensor(
    [[[1, 1, 1], [0, 9, 9], [0, 9, 0], [0, 0, 0]], [[9, 9, 0], [9, 0, 9], [0, 0, 0], [9, -9, 0]],
     [[1, 1, 1], [0, 9, 9], [0, 0, 0], [0, 9, 0]], [[9, 9, 0], [9, 0, 9], [0, 0, 0], [9, -9, 0]],
     [[9, 9, 0], [9, 0, 9], [0, 0, 0], [9, -9, 0]]],
).float()  # fmt: skip
LOGITS_T = torch.tensor(
    [[[1, 1, 1], [9, 0, 9], [1, 0, 0], [0, 0, 9]], [[9, 9, 0], [9, 0, 0], [1, 1, 1], [9, -9, 0]],
     [[1, 1, 1], [9, 0, 9], [0, 0, 9], [1, 0, 0]], [[9, 9, 0], [9, 0, 0], [1, 1, 1], [9, -9, 0]],
     [[9, 9, 0], [9, 0, 0], [0, 9, 9], [9, -9, 0]]],
).float()  # fmt: skip
SELECTOR = torch.tensor(
    [[1, 0, 0, 9], [9, 0, 1, 1], [1, 9, 1, 1], [0, 1, 0, 9], [1, 1, 1, 9]],
).float()  # fmt: skip
A_TM1, R_T = torch.tensor([2, 1, 3, 0, 1]), torch.tensor([0.5, 0.0, 0.5, 0.8, -0.1])
DISCOUNT_T, THREE = torch.tensor([0.8, 1.0, 0.8, 0.0, 1.0]), torch.tensor([0.5, 1.0, 1.5])


def cross_entropy(selector: torch.Tensor) -> torch.Tensor:
    next_t = gather_q(LOGITS_T, selector.argmax(dim=1)).softmax(dim=1)
    target = categorical_projection(bellman_target(R_T, DISCOUNT_T, THREE[None]), next_t, THREE)
    return kl_divergence(target, gather_q(LOGITS_TM1, A_TM1)) - torch.xlogy(target, target).sum(dim=1)


def test_categorical_q_learning_equals_rlaxs() -> None:
    # rlax, value_learning_test.py, CategoricalQLearningTest
    found = cross_entropy(LOGITS_T.softmax(dim=2) @ THREE)
    expected = torch.tensor([8.998915, 3.6932087, 8.998915, 0.69320893, 5.1929307])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)


def test_categorical_double_q_learning_equals_rlaxs() -> None:
    # rlax, value_learning_test.py, CategoricalDoubleQLearningTest
    expected = torch.tensor([8.998915, 5.192931, 5.400247, 0.693209, 0.693431])
    torch.testing.assert_close(cross_entropy(SELECTOR), expected, rtol=1e-4, atol=0)


def test_kl_divergence_equals_a_loop_in_double_precision() -> None:
    target, logits = numbers(8, 51, scale=3).softmax(dim=1), numbers(8, 51, seed=1, scale=3)
    expected = []
    for m, x in zip(target.double().numpy(), logits.double().numpy(), strict=True):
        log_p = x - math.log(sum(math.exp(value) for value in x))
        expected.append(sum(m[i] * (math.log(m[i]) - log_p[i]) for i in range(51)))
    np.testing.assert_allclose(kl_divergence(target, logits).numpy(), expected, rtol=1e-5)


def test_kl_divergence_of_a_distribution_from_itself_is_zero() -> None:
    logits = numbers(4, 51)
    assert kl_divergence(logits.softmax(dim=1), logits).abs().max() < 1e-6


def test_gradient_of_kl_divergence_is_the_difference_of_masses() -> None:
    target, logits = numbers(4, 51).softmax(dim=1), numbers(4, 51, seed=1).requires_grad_()
    kl_divergence(target, logits).sum().backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, logits.detach().softmax(dim=1) - target, rtol=0, atol=1e-6)


@pytest.mark.fault("W14")
@pytest.mark.parametrize("size", [1e4, -1e4])
@pytest.mark.parametrize("place", [0, 25, 50])
def test_categorical_loss_and_gradient_are_finite_at_logits_of_ten_thousand(size, place) -> None:
    logits = torch.zeros(1, 51)
    logits[0, place] = size
    target = categorical_projection(
        bellman_target(torch.tensor([1.0]), torch.tensor([0.99]), ATOMS[None]), logits.softmax(1), ATOMS
    )
    wrong = logits.flip(1).requires_grad_()
    loss = kl_divergence(target, wrong)
    loss.sum().backward()
    assert wrong.grad is not None
    assert torch.isfinite(loss).all()
    assert torch.isfinite(wrong.grad).all()


# --- the quantile loss


def test_quantile_loss_equals_rlaxs() -> None:
    # rlax, value_learning_test.py, QuantileRegressionLossTest with κ = 2: halves of
    # all numbers make κ 1, and the loss a quarter
    quantiles, targets = torch.tensor([[-1.0, 3.0]] * 2) / 2, torch.tensor([[-3.0, 4.0, 2.0]] * 2) / 2
    found = quantile_huber(quantiles, torch.tensor([[0.2, 0.7], [0.0, 0.4]]), targets)
    torch.testing.assert_close(found, torch.tensor([2.5, 8.5 / 3]) / 4)


def test_implicit_quantile_loss_by_hand() -> None:
    # each state has fractions of its own (IQN): errors 1 and −2, then 0.5 and 3; κ = 1
    found = quantile_huber(
        torch.tensor([[0.0], [1.0]]), torch.tensor([[0.25], [0.9]]), torch.tensor([[1.0, -2.0], [1.5, 4.0]])
    )
    # (0.25 · ½ + 0.75 · 1.5) / 2 and (0.9 · ⅛ + 0.9 · 2.5) / 2
    torch.testing.assert_close(found, torch.tensor([0.625, 1.18125]))


@pytest.mark.parametrize("shared", [True, False])
def test_quantile_loss_equals_a_loop_in_double_precision(shared: bool) -> None:
    quantiles, targets = numbers(6, 8, scale=2), numbers(6, 5, seed=1, scale=2)
    fractions = torch.rand((1 if shared else 6, 8), generator=torch.Generator().manual_seed(0))
    expected = np.zeros(6)
    for row in range(6):
        for i in range(8):
            tau = fractions[0 if shared else row, i].item()
            for j in range(5):
                delta = targets[row, j].item() - quantiles[row, i].item()
                huber = delta**2 / 2 if abs(delta) <= 1 else abs(delta) - 0.5
                expected[row] += abs(tau - (delta < 0)) * huber / 5
    np.testing.assert_allclose(quantile_huber(quantiles, fractions, targets).numpy(), expected, rtol=1e-5)


def test_quantile_loss_pulls_each_quantile_to_its_fraction_of_the_targets() -> None:
    quantiles = torch.zeros(1, 3, requires_grad=True)
    fractions, targets = torch.tensor([[0.1, 0.5, 0.9]]), torch.arange(0.0, 100.0)[None]
    for _ in range(3_000):
        (gradient,) = torch.autograd.grad(quantile_huber(quantiles, fractions, targets).sum(), quantiles)
        quantiles = (quantiles - gradient).detach().requires_grad_()
    assert quantiles[0].tolist() == pytest.approx([9.5, 49.5, 89.5], abs=1.0)


# --- Munchausen


def test_log_policy_equals_a_loop_in_double_precision() -> None:
    q = numbers(6, 4)
    expected = []
    for row in q.double().numpy():
        total = math.log(sum(math.exp((value - max(row)) / 0.03) for value in row))
        expected.append([(value - max(row)) - 0.03 * total for value in row])
    np.testing.assert_allclose(scaled_log_policy(q, 0.03).numpy(), expected, rtol=0, atol=1e-5)


def test_munchausen_target_by_hand() -> None:
    # Vieillard et al. (2020), eq. 2, at τ = ½, α = 0.9, γ = 0.99: values of which the second is ½ ln 3 above
    # the first are a policy of ¼ and ¾, whose soft value is ½ ln 4 above it
    temperature, gap = 0.5, 0.5 * math.log(3)
    log_policy_tm1 = scaled_log_policy(torch.tensor([[7.0, 7.0 + gap]]), temperature)
    assert log_policy_tm1[0].tolist() == pytest.approx([0.5 * math.log(0.25), 0.5 * math.log(0.75)], abs=1e-6)
    bonus = munchausen_bonus(log_policy_tm1, torch.tensor([0]), scale=0.9, lowest=-1.0)
    q_t = torch.tensor([[1.0, 1.0 + gap]])
    z_t = soft_value(q_t[:, :, None], scaled_log_policy(q_t, temperature), temperature)
    target = bellman_target(torch.tensor([0.3]) + bonus, torch.tensor([0.99]), z_t)
    assert target.item() == pytest.approx(0.3 - 0.6238325 + 0.99 * 1.6931472, abs=1e-5)


@pytest.mark.fault("P02")
@pytest.mark.parametrize("size", [1e4, 1e6])
def test_log_policy_and_soft_value_are_finite_at_values_of_a_million(size: float) -> None:
    q = torch.tensor([[size, -size, 0.0]])
    log_policy = scaled_log_policy(q, 0.03)
    assert log_policy.tolist() == [[0.0, -2 * size, -size]]
    assert soft_value(q[:, :, None], log_policy, 0.03).tolist() == [[size]]


def test_munchausen_bonus_is_clipped_at_minus_one() -> None:
    log_policy = torch.tensor([[0.0, -7.0], [-0.5, -0.1]])
    found = munchausen_bonus(log_policy, torch.tensor([1, 0]), scale=0.9, lowest=-1.0)
    assert found.tolist() == pytest.approx([-0.9, -0.45])


def test_bonus_of_a_sure_action_is_zero() -> None:
    log_policy = scaled_log_policy(torch.tensor([[50.0, 0.0]]), 0.03)
    assert munchausen_bonus(log_policy, torch.tensor([0]), scale=0.9, lowest=-1.0).item() == 0.0


def test_soft_value_of_values_is_the_scaled_log_of_summed_exponentials() -> None:
    q = numbers(8, 4)
    found = soft_value(q[:, :, None], scaled_log_policy(q, 0.5), 0.5).squeeze(1)
    torch.testing.assert_close(found, 0.5 * (q / 0.5).logsumexp(dim=1))


def test_soft_value_goes_to_the_largest_value_as_the_temperature_falls() -> None:
    q = torch.tensor([[1.0, 3.0, 2.0]])
    assert soft_value(q[:, :, None], scaled_log_policy(q, 1e-3), 1e-3).item() == pytest.approx(3.0)


def test_soft_value_of_quantiles_shifts_each_by_the_same_entropy() -> None:
    z, q = numbers(5, 3, 7), numbers(5, 3, seed=1)
    log_policy = scaled_log_policy(q, 0.3)
    policy = (q / 0.3).softmax(dim=1)
    expected = (policy[:, :, None] * z).sum(dim=1) - (policy * log_policy).sum(dim=1)[:, None]
    torch.testing.assert_close(soft_value(z, log_policy, 0.3), expected)
