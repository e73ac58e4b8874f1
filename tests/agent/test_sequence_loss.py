"""The loss of sequences: hand-worked numbers, and equality with a loop over single steps."""

import math

import pytest
import torch
from parts import make_network
from sequences import make_recurrent_network, make_sequences

from atari_dqn.agent import rules
from atari_dqn.agent.losses import LOSS_METRICS, LossOutput
from atari_dqn.agent.sequence_loss import (
    SequenceTDLoss,
    mixed_priority,
    rescaled,
    unchanged,
    unrescaled,
)
from atari_dqn.agent.unroll import EachStack, UnrollMemory
from atari_dqn.minibatch import SequenceBatch


@pytest.mark.parametrize(
    ("x", "h"), [(0.0, 0.0), (3.0, 1.003), (-3.0, -1.003), (99.0, 9.099), (-8.0, -2.008), (1e4, 109.005)]
)
def test_rescaling_by_hand(x: float, h: float) -> None:
    # h(3) = √4 − 1 + 0.003;  h(99) = √100 − 1 + 0.099
    assert rescaled(torch.tensor(x)).item() == pytest.approx(h, rel=1e-6)


@pytest.mark.fault("P02")
@pytest.mark.parametrize("x", [0.0, 1e-4, -0.01, 0.5, -1.0, 21.0, -837.7, 408_850.0, 1e6, -1e6])
def test_inverse_undoes_the_rescaling_in_fp32(x: float) -> None:
    assert unrescaled(rescaled(torch.tensor(x))).item() == pytest.approx(x, rel=2e-5, abs=1e-6)


def test_inverse_is_the_papers_formula() -> None:
    y, e = 9.099, 1e-3
    root = (math.sqrt(1 + 4 * e * (abs(y) + 1 + e)) - 1) / (2 * e)
    assert unrescaled(torch.tensor(y)).item() == pytest.approx(root**2 - 1, rel=1e-5)


def test_priority_by_hand() -> None:
    error = torch.tensor([[1.0, -3.0, 2.0], [4.0, 2.0, 99.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    # 0.9 · 3 + 0.1 · 2 and 0.9 · 4 + 0.1 · 3
    torch.testing.assert_close(mixed_priority(error, mask, 0.9), torch.tensor([2.9, 3.9]))


def loss_of(**changed) -> SequenceTDLoss:
    plain = {
        "unroll": UnrollMemory(), "is_double": True, "rule": rules.mse, "is_mean": False, "priority_mix": 0.9,
        "h": rescaled, "h_inverse": unrescaled,
    }  # fmt: skip
    return SequenceTDLoss(**(plain | changed))


def computed(loss: SequenceTDLoss, batch: SequenceBatch | None = None) -> LossOutput:
    online, target = make_recurrent_network(seed=1), make_recurrent_network(seed=2)
    return loss(batch or make_sequences(), online, target, torch.Generator())


@pytest.mark.parametrize("is_rescaled", [True, False])
@pytest.mark.parametrize("is_double", [True, False])
def test_loss_equals_a_loop_over_the_steps(is_double: bool, is_rescaled: bool) -> None:
    batch = make_sequences()
    online, target = make_recurrent_network(seed=1), make_recurrent_network(seed=2)
    h, h_inverse = (rescaled, unrescaled) if is_rescaled else (unchanged, unchanged)
    loss = loss_of(is_double=is_double, h=h, h_inverse=h_inverse)
    found = loss(batch, online, target, torch.Generator())
    q, q_target = (UnrollMemory().q_values(network, batch).double() for network in (online, target))
    for row in range(4):
        errors = []
        for step in range(int(batch.mask[row].sum())):
            end = batch.end_t[row, step]
            best = (q if is_double else q_target)[row, end].argmax()
            target_q = batch.r_t[row, step] + batch.discount_t[row, step] * h_inverse(
                q_target[row, end, best]
            )
            errors.append(h(target_q) - q[row, step, batch.a_tm1[row, step]])
        error = torch.stack(errors)
        assert found.loss[row].item() == pytest.approx(0.5 * error.square().sum().item(), rel=1e-4)
        priority = 0.9 * error.abs().max() + 0.1 * error.abs().mean()
        assert found.priorities[row].item() == pytest.approx(priority.item(), rel=1e-4)
        assert found.metrics["mean_abs_td_error"][row].item() == pytest.approx(
            error.abs().mean().item(), rel=1e-4
        )


def test_metrics_are_the_declared_ones() -> None:
    assert set(computed(loss_of()).metrics) == set(LOSS_METRICS)


def test_q_values_that_are_reported_are_those_of_the_steps_of_each_sequence() -> None:
    batch, metrics = make_sequences(), computed(loss_of()).metrics
    q = UnrollMemory().q_values(make_recurrent_network(seed=1), batch)
    for row, steps in enumerate(batch.mask.sum(dim=1).tolist()):
        chosen = [q[row, step, batch.a_tm1[row, step]].item() for step in range(steps)]
        assert metrics["mean_q"][row].item() == pytest.approx(sum(chosen) / steps, rel=1e-5)
        assert metrics["max_q"][row].item() == pytest.approx(q[row, :steps].max().item(), rel=1e-5)


@pytest.mark.fault("W02")
def test_mean_over_the_steps_divides_by_the_steps_of_each_sequence() -> None:
    steps = torch.tensor([5.0, 5.0, 5.0, 3.0])
    torch.testing.assert_close(computed(loss_of(is_mean=True)).loss * steps, computed(loss_of()).loss)


def test_weight_multiplies_the_loss_and_not_the_priority() -> None:
    weight = torch.tensor([0.5, 1.0, 0.25, 0.0])
    plain, weighted = computed(loss_of()), computed(loss_of(), make_sequences(weight=weight))
    torch.testing.assert_close(weighted.loss, plain.loss * weight)
    torch.testing.assert_close(weighted.priorities, plain.priorities)


def test_masked_steps_change_nothing() -> None:
    plain = make_sequences()
    other = make_sequences(r_t=plain.r_t.masked_fill(~plain.mask, 1e6))
    assert torch.equal(computed(loss_of(), other).loss, computed(loss_of()).loss)
    assert torch.equal(computed(loss_of(), other).priorities, computed(loss_of()).priorities)


@pytest.mark.fault("W09")
def test_target_network_gets_no_gradient() -> None:
    online, target = make_recurrent_network(seed=1), make_recurrent_network(seed=2)
    loss_of()(make_sequences(), online, target, torch.Generator()).loss.sum().backward()
    assert all(weight.grad is None for weight in target.parameters())


@pytest.mark.fault("P02")
def test_loss_is_finite_at_extreme_rewards() -> None:
    batch = make_sequences(r_t=torch.full((4, 5), 1e6))
    assert computed(loss_of(rule=rules.huber), batch).loss.isfinite().all()


def test_network_without_memory_learns_from_each_stack() -> None:

    batch, network = make_sequences(stack=4, width=0), make_network()
    q = EachStack().q_values(network, batch)
    for step in range(q.shape[1]):
        stack = batch.frames[:, 3 + step : 7 + step]
        torch.testing.assert_close(q[:, step], network(stack), atol=1e-5, rtol=1e-5)
