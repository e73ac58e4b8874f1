import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from atari_dqn.agent.rules import bellman_target, gather_q, huber, mse


def q_target(r_t: Tensor, discount_t: Tensor, q_t: Tensor, selector: Tensor | None = None) -> Tensor:
    """The target of values, as the rules put it together."""
    z_t = gather_q(q_t[:, :, None], (q_t if selector is None else selector).argmax(dim=1))
    return bellman_target(r_t, discount_t, z_t).squeeze(1)


def test_q_target_is_reward_and_discounted_largest_value() -> None:
    r_t, discount_t = torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.25])
    q_t = torch.tensor([[2.0, 6.0], [-4.0, -8.0]])
    assert q_target(r_t, discount_t, q_t).tolist() == [1 + 0.5 * 6, -1 + 0.25 * -4]


@pytest.mark.fault("D-ok.discount")
def test_target_of_a_last_transition_is_its_reward() -> None:
    assert q_target(torch.tensor([3.0]), torch.tensor([0.0]), torch.tensor([[50.0, 60.0]])).tolist() == [3.0]


@pytest.mark.fault("D-ok.double")
def test_double_selects_with_one_network_and_rates_with_the_other() -> None:
    rates, selects = torch.tensor([[10.0, 20.0, 30.0]]), torch.tensor([[5.0, 9.0, 1.0]])
    target = q_target(torch.tensor([1.0]), torch.tensor([0.5]), rates, selects)
    assert target.tolist() == [1 + 0.5 * 20]


def test_q_learning_equals_rlaxs() -> None:
    # rlax, value_learning_test.py, QLearningTest: TD errors
    q_tm1, q_t = torch.tensor([[1.0, 1, 0], [1, 2, 0]]), torch.tensor([[0.0, 1, 0], [1, 2, 0]])
    target = q_target(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 1.0]), q_t)
    assert (target - gather_q(q_tm1, torch.tensor([0, 1]))).tolist() == [0.0, 1.0]


def test_double_q_learning_equals_rlaxs() -> None:
    # rlax, value_learning_test.py, DoubleQLearningTest: TD errors
    rates, selects = torch.tensor([[99.0, 1, 98], [91, 2, 66]]), torch.tensor([[2.0, 10, 1], [11, 20, 1]])
    target = q_target(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 1.0]), rates, selects)
    q_tm1 = torch.tensor([[1.0, 1, 0], [1, 2, 0]])
    assert (target - gather_q(q_tm1, torch.tensor([0, 1]))).tolist() == [0.0, 1.0]


def test_double_equals_plain_where_both_networks_are_one() -> None:
    q_t = torch.tensor([[1.0, 3.0], [7.0, 2.0]])
    r_t, discount_t = torch.tensor([0.0, 1.0]), torch.tensor([0.9, 0.9])
    assert torch.equal(q_target(r_t, discount_t, q_t, q_t), q_target(r_t, discount_t, q_t))


@pytest.mark.fault("D-ok.taken")
def test_gather_q_selects_each_rows_own_action() -> None:
    q = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert gather_q(q, torch.tensor([2, 0])).tolist() == [3.0, 4.0]


def test_huber_is_quadratic_up_to_one_and_linear_beyond() -> None:
    errors = torch.tensor([0.0, 0.5, -1.0, 2.0, -3.0])
    assert huber(errors).tolist() == [0.0, 0.125, 0.5, 1.5, 2.5]


def test_gradient_of_huber_is_the_error_clipped_to_one() -> None:
    errors = torch.tensor([-5.0, -1.0, -0.25, 0.0, 0.75, 1.0, 4.0], requires_grad=True)
    huber(errors).sum().backward()
    assert errors.grad is not None
    assert errors.grad.tolist() == [-1.0, -1.0, -0.25, 0.0, 0.75, 1.0, 1.0]


def test_gradient_of_mse_is_the_error() -> None:
    errors = torch.tensor([-5.0, 0.25, 4.0], requires_grad=True)
    mse(errors).sum().backward()
    assert errors.grad is not None
    assert errors.grad.tolist() == [-5.0, 0.25, 4.0]


def test_mse_is_half_the_square() -> None:
    assert mse(torch.tensor([-3.0, 0.0, 0.5])).tolist() == [4.5, 0.0, 0.125]


@pytest.mark.fault("P02", "P03")
@pytest.mark.parametrize("rule", [huber, mse])
@pytest.mark.parametrize("size", [1e6, -1e6])
def test_losses_of_errors_of_a_million_are_finite(rule, size: float) -> None:
    error = torch.tensor([size], requires_grad=True)
    loss = rule(error)
    loss.sum().backward()
    assert error.grad is not None
    assert torch.isfinite(loss).all()
    assert torch.isfinite(error.grad).all()


@pytest.mark.fault("P02")
def test_targets_of_values_of_a_million_are_finite() -> None:
    values = torch.tensor([[1e6, -1e6]])
    assert q_target(torch.tensor([1e6]), torch.tensor([0.99]), values).tolist() == [1.99e6]


# none that a CPU which takes denormal numbers as 0 cannot hold
NUMBERS = st.floats(-100, 100, width=32, allow_subnormal=False)
SHARES = st.floats(0, 1, width=32, allow_subnormal=False)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.tuples(NUMBERS, SHARES, NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=1))
def test_targets_and_losses_equal_a_loop_in_double_precision(rows) -> None:
    columns = torch.tensor(rows, dtype=torch.float32)
    r_t, discount_t, q_t, selector = columns[:, 0], columns[:, 1], columns[:, 2:4], columns[:, 4:6]
    plain = [r + g * max(a, b) for r, g, a, b, _, _ in rows]
    double = [r + g * (a if c >= d else b) for r, g, a, b, c, d in rows]
    losses = [x * x / 2 if abs(x) <= 1 else abs(x) - 0.5 for x in plain]
    close = {"rtol": 1e-5, "atol": 1e-4, "check_dtype": False}
    torch.testing.assert_close(q_target(r_t, discount_t, q_t), torch.tensor(plain), **close)
    torch.testing.assert_close(q_target(r_t, discount_t, q_t, selector), torch.tensor(double), **close)
    torch.testing.assert_close(huber(torch.tensor(plain)), torch.tensor(losses), **close)
