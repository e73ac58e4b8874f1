"""Learners of every kind of prediction: targets, what goes back to the replay, exact states."""

import copy

import pytest
import torch
from parts import flat, frames, make_batch, stream
from test_predictions import make

from atari_dqn.agent import rules
from atari_dqn.agent.distributions import Categorical
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.losses import CATEGORICAL_PRIORITIES, CategoricalLoss, ScalarLoss, TDLoss, quantile_loss
from atari_dqn.agent.targets import Bootstrap, MunchausenTarget, double_dqn_target, dqn_target

LOSSES = {
    "value": ScalarLoss(rules.huber),
    "c51": CategoricalLoss(rules.kl_divergence),
    "qr_dqn": quantile_loss,
    "iqn": quantile_loss,
}
MUNCHAUSEN = MunchausenTarget(scale=0.9, temperature=0.03, lowest=-1.0)


def learner_of(kind: str, *, rule=dqn_target, accumulate: int = 1) -> Learner:
    online = make(kind)
    return Learner(
        online=online, target=make(kind), optimizer=torch.optim.Adam(online.parameters(), 0.001),
        loss=TDLoss(target_rule=rule, distribution_loss=LOSSES[kind]),
        reduction="mean", accumulate=accumulate,
        max_grad_norm=float("inf"), target_period_updates=10_000, generator=stream(seed=3),
    )  # fmt: skip


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind == "iqn" else []) for kind in LOSSES]
)
def test_learning_fits_a_minibatch_shown_again_and_again(kind: str) -> None:
    learner, batch = learner_of(kind), make_batch(discount_t=torch.zeros(4))
    for _ in range(150 if kind == "iqn" else 60):  # IQN learns from samples
        learner.update(batch)
    with torch.no_grad():
        values = rules.gather_q(learner.online(batch.s_tm1), batch.a_tm1)
    torch.testing.assert_close(values, batch.r_t, rtol=0, atol=0.15)


@pytest.mark.parametrize("kind", LOSSES)
def test_errors_for_the_replay_are_finite_and_not_below_zero(kind: str) -> None:
    update = learner_of(kind).update(make_batch())
    assert (update.priorities >= 0).all()
    assert torch.isfinite(update.priorities).all()
    if kind != "value":
        torch.testing.assert_close(update.priorities.mean(), update.metrics["loss"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", LOSSES)
def test_weight_multiplies_the_loss_and_its_metric_and_not_the_priority(kind: str) -> None:
    weight = torch.tensor([0.5, 1.0, 0.25, 0.0])
    learner = learner_of(kind)
    plain, weighted = (
        learner.loss(batch, learner.online, learner.target, stream())
        for batch in (make_batch(), make_batch(weight=weight))
    )
    assert torch.equal(weighted.loss, plain.loss * weight)
    assert torch.equal(weighted.metrics["loss"], weighted.loss)
    assert torch.equal(weighted.priorities, plain.priorities)


@pytest.mark.fault("D03")
@pytest.mark.parametrize("kind", LOSSES)
def test_update_of_a_nan_reward_moves_nothing(kind: str) -> None:
    learner = learner_of(kind)
    before = flat(learner)
    learner.update(make_batch(r_t=torch.tensor([float("nan")] * 4)))
    assert torch.equal(flat(learner), before)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("rule", [dqn_target, double_dqn_target, MUNCHAUSEN])
def test_loaded_learner_draws_on_as_the_saved_one_would(kind: str, rule) -> None:
    if kind in ("c51", "qr_dqn") and rule is MUNCHAUSEN:
        pytest.skip("the spec refuses it")
    saved, loaded = learner_of(kind, rule=rule), learner_of(kind, rule=rule)
    saved.update(make_batch())
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    for learner in (saved, loaded):
        learner.update(make_batch())
    assert torch.equal(flat(saved), flat(loaded))


def test_td_error_of_atoms_is_the_difference_of_means() -> None:
    learner, batch = learner_of("c51"), make_batch(r_t=torch.zeros(4))  # nothing falls off the support
    with torch.no_grad():
        predicted = learner.online.distribution(batch.s_tm1)
        compared = LOSSES["c51"](
            predicted, batch.a_tm1, dqn_target(batch, learner.online, learner.target, stream())
        )
        q_t = learner.target(batch.s_t).amax(dim=1)
        expected = batch.r_t + batch.discount_t * q_t - rules.gather_q(predicted.q_values(), batch.a_tm1)
    torch.testing.assert_close(compared.td_error, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("priority", "error"),
    [
        # target (1/4, 3/4); predicted (1/2, 1/2) and (1/4, 3/4). Cross-entropies ln 2 and the entropy of the
        # target, 1/4 ln 4 + 3/4 ln 4/3 = 0.562335; divergences are these less that entropy
        ("kl", [0.130812, 0.0]),
        ("cross_entropy", [0.693147, 0.562335]),
    ],
)
def test_priority_of_atoms_is_the_divergence_or_the_cross_entropy(priority: str, error: list[float]) -> None:
    predicted = Categorical(torch.tensor([[[1.0, 3.0]], [[1.0, 3.0]]]).log(), torch.tensor([0.0, 1.0]))
    predicted.outputs[0] = 0.0
    goal = torch.tensor([[1.0, 3.0], [1.0, 3.0]]).log()
    bootstrap = Bootstrap(r_t=torch.zeros(2), discount_t=torch.ones(2), z_t=goal)
    compared = CategoricalLoss(CATEGORICAL_PRIORITIES[priority])(predicted, torch.tensor([0, 0]), bootstrap)
    assert compared.priority.tolist() == pytest.approx(error, abs=1e-6)


def test_divergence_that_rounds_below_zero_is_a_priority_of_zero() -> None:
    logits = torch.randn(200, 1, 51, generator=stream())
    predicted = Categorical(logits, torch.linspace(-10.0, 10.0, 51))
    own = Bootstrap(r_t=torch.zeros(200), discount_t=torch.ones(200), z_t=logits[:, 0])
    compared = LOSSES["c51"](predicted, torch.zeros(200, dtype=torch.int64), own)
    assert compared.loss.min() < 0
    assert compared.priority.min() == 0


@pytest.mark.parametrize("priority", CATEGORICAL_PRIORITIES)
def test_loss_of_atoms_is_the_divergence_whatever_the_priority(priority: str) -> None:
    predicted = Categorical(torch.zeros(1, 1, 2), torch.tensor([0.0, 1.0]))
    goal = torch.tensor([[1.0, 3.0]]).log()
    bootstrap = Bootstrap(r_t=torch.zeros(1), discount_t=torch.ones(1), z_t=goal)
    compared = CategoricalLoss(CATEGORICAL_PRIORITIES[priority])(predicted, torch.tensor([0]), bootstrap)
    assert compared.loss.tolist() == pytest.approx([0.130812], abs=1e-6)


def test_double_of_atoms_takes_the_masses_of_the_action_the_online_network_selects() -> None:
    learner, batch = learner_of("c51"), make_batch()
    with torch.no_grad():
        learner.online.head.output.bias.view(3, 51)[1] = torch.linspace(-99.0, 99.0, 51)
        bootstrap = double_dqn_target(batch, learner.online, learner.target, stream())
        expected = learner.target.distribution(batch.s_t).outputs[:, 1]
    assert torch.equal(bootstrap.z_t, expected)


def test_munchausen_target_equals_the_papers_formula() -> None:
    learner, batch = learner_of("value", rule=MUNCHAUSEN), make_batch()
    with torch.no_grad():
        q_tm1, q_t = learner.target(batch.s_tm1).double(), learner.target(batch.s_t).double()
        policy, log_tm1 = (q_t / 0.03).softmax(1), 0.03 * (q_tm1 / 0.03).log_softmax(1)
        bonus = 0.9 * log_tm1[torch.arange(4), batch.a_tm1].clamp(-1, 0)
        soft = (policy * (q_t - 0.03 * policy.log())).sum(1)
        bootstrap = MUNCHAUSEN(batch, learner.online, learner.target, stream())
        found = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, bootstrap.z_t).squeeze(1)
    torch.testing.assert_close(found.double(), batch.r_t + bonus + 0.99 * soft, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", LOSSES)
def test_loss_of_a_minibatch_in_parts_is_that_of_the_whole(kind: str) -> None:
    # iqn draws other fractions for each part; the others are equal to rounding
    whole, parts = (learner_of(kind, accumulate=n).update(make_batch(8)) for n in (1, 4))
    torch.testing.assert_close(
        parts.metrics["loss"], whole.metrics["loss"], rtol=0.5 if kind == "iqn" else 1e-4, atol=1e-5
    )


@pytest.mark.fault("W09")
def test_no_gradient_reaches_the_target_network_of_any_kind() -> None:
    for kind in LOSSES:
        learner = learner_of(kind)
        learner.update(make_batch())
        assert {parameter.grad for parameter in learner.target.parameters()} == {None}
        assert learner.target(frames(1)).requires_grad is False
