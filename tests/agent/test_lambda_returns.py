"""λ-returns by hand, and as the weighted sum of n-step returns in double precision."""

import pytest
import torch
from parts import make_batch, make_network, stream

from atari_dqn.agent import rules
from atari_dqn.agent.lambda_returns import lambda_return_target, lambda_returns
from atari_dqn.agent.losses import ScalarLoss, TDLoss

GAMMA = 0.99


def returns_of(
    rewards: list[float], discounts: list[float], steps: list[bool], max_q: list[float], trace_decay: float
) -> list[float]:
    """Return the λ-returns of one environment."""
    columns = (torch.tensor(column)[:, None] for column in (rewards, discounts, steps, max_q))
    found: list[float] = lambda_returns(*columns, trace_decay)[:, 0].tolist()
    return found


def test_returns_by_hand() -> None:
    # G₂ = 0 + 0.5 · 8 = 4; G₁ = 2 + 0.5 (0.75 · 4 + 0.25 · 4) = 4; G₀ = 1 + 0.5 (0.75 · 2 + 0.25 · 4) = 2.25
    found = returns_of([1.0, 2.0, 0.0], [0.5] * 3, [True] * 3, [9.0, 2.0, 4.0, 8.0], 0.25)
    assert found == pytest.approx([2.25, 4.0, 4.0])


def test_without_traces_a_return_is_the_target_of_q_learning() -> None:
    found = returns_of([1.0, 2.0, 0.0], [0.5] * 3, [True] * 3, [9.0, 2.0, 4.0, 8.0], 0.0)
    assert found == pytest.approx([1 + 0.5 * 2, 2 + 0.5 * 4, 0.5 * 8])


def test_with_whole_traces_a_return_bootstraps_at_the_rollouts_end_only() -> None:
    found = returns_of([1.0, 2.0, 0.0], [0.5] * 3, [True] * 3, [9.0, 2.0, 4.0, 8.0], 1.0)
    assert found == pytest.approx([1 + 0.5 * (2 + 0.5 * 0.5 * 8), 2 + 0.5 * 0.5 * 8, 0.5 * 8])


def test_nothing_follows_a_terminal_step() -> None:
    found = returns_of([1.0, 2.0, 5.0], [0.5, 0.0, 0.5], [True] * 3, [9.0, 2.0, 100.0, 8.0], 0.5)
    assert found == pytest.approx([1 + 0.5 * (0.5 * 2 + 0.5 * 2), 2.0, 5 + 0.5 * 8])


def test_truncated_episode_bootstraps_from_its_last_frame() -> None:
    # row 1 has the last frame of an episode; row 2 is the first step of the next one
    found = returns_of([1.0, 0.0, 5.0], [0.5] * 3, [True, False, True], [9.0, 6.0, 100.0, 8.0], 0.5)
    assert found[0] == pytest.approx(1 + 0.5 * 6)
    assert found[2] == pytest.approx(5 + 0.5 * 8)


def summed_returns(rewards, discounts, steps, max_q, trace_decay: float, start: int) -> float:
    """Return (1 − λ) Σ λⁿ⁻¹ Gⁿ + λᴺ⁻¹ Gᴺ of one environment, with Gⁿ the n-step return."""
    n_step_returns, total, factor = [], 0.0, 1.0
    for row in range(start, len(rewards)):
        total += factor * float(rewards[row])
        factor *= float(discounts[row])
        n_step_returns.append(total + factor * float(max_q[row + 1]))
        if factor == 0 or row + 1 == len(rewards) or not steps[row + 1]:
            break
    *earlier, last = n_step_returns
    weighted = sum((1 - trace_decay) * trace_decay**n * each for n, each in enumerate(earlier))
    return weighted + trace_decay ** len(earlier) * last


@pytest.mark.parametrize("trace_decay", [0.0, 0.65, 1.0])
def test_returns_are_the_weighted_sums_of_n_step_returns(trace_decay: float) -> None:
    generator = torch.Generator().manual_seed(0)
    rewards, max_q = torch.randn(32, 6, generator=generator), torch.randn(33, 6, generator=generator)
    discounts = GAMMA * (torch.rand(32, 6, generator=generator) > 0.1)
    steps = torch.rand(32, 6, generator=generator) > 0.1
    found = lambda_returns(rewards, discounts, steps, max_q, trace_decay)
    for env in range(6):
        columns = [column[:, env].double() for column in (rewards, discounts)]
        for row in range(32):
            if steps[row, env]:
                expected = summed_returns(*columns, steps[:, env], max_q[:, env].double(), trace_decay, row)
                assert float(found[row, env]) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_loss_is_half_the_squared_distance_to_the_return() -> None:
    network, batch = make_network(), make_batch(discount_t=torch.zeros(4))
    loss = TDLoss(target_rule=lambda_return_target, distribution_loss=ScalarLoss(rules.mse))
    found = loss(batch, network, network, stream())
    q = network(batch.s_tm1).detach().double()
    expected = [0.5 * (float(batch.r_t[row]) - float(q[row, batch.a_tm1[row]])) ** 2 for row in range(4)]
    assert found.loss.tolist() == pytest.approx(expected, rel=1e-5)
