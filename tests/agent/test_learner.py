import copy
import signal
from functools import partial

import pytest
import torch
from parts import flat, frames, make_batch, make_learner, movement, stream

from atari_dqn.agent import rules
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.optimizers import adam, deepmind_rmsprop, torch_rmsprop
from atari_dqn.agent.targets import Bootstrap, double_dqn_target, dqn_target
from atari_dqn.run.checkpoint.state_tree import tree_digest

RMSPROP = partial(
    deepmind_rmsprop, learning_rate=0.00025, epsilon=0.01, gradient_decay=0.95, squared_gradient_decay=0.95
)
ADAM = partial(adam, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=0.01)


def target_values(bootstrap: Bootstrap) -> torch.Tensor:
    return rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, bootstrap.z_t).squeeze(1)


def test_target_network_begins_as_a_copy_of_the_online_one() -> None:
    learner = make_learner()
    assert torch.equal(learner.target(frames(2)), learner.online(frames(2)))


@pytest.mark.fault("D10", "W09")
def test_target_network_never_requires_or_receives_gradients() -> None:
    learner = make_learner(optimizer=RMSPROP, target_rule=double_dqn_target, target_period_updates=2)
    for _ in range(5):
        learner.update(make_batch())
    assert {(parameter.requires_grad, parameter.grad) for parameter in learner.target.parameters()} == {
        (False, None)
    }


@pytest.mark.fault("W09")
@pytest.mark.parametrize("rule", [dqn_target, double_dqn_target])
def test_bootstrapped_value_carries_no_gradient(rule) -> None:
    learner = make_learner(target_rule=rule)
    with torch.no_grad():
        q_tm1 = learner.online(frames(4, seed=1))
    # where s_t = s_tm1, a leak through the target would change the gradient from −δ to −δ(1 − γ)
    batch = make_batch(s_t=frames(4, seed=1), discount_t=torch.full((4,), 0.5), r_t=torch.zeros(4))
    moved = movement(learner, batch)
    other = make_learner(target_rule=rule)
    target = 0.5 * q_tm1.amax(dim=1)
    expected = movement(other, make_batch(r_t=target, discount_t=torch.zeros(4)))
    torch.testing.assert_close(moved, expected, rtol=1e-4, atol=1e-8)


@pytest.mark.fault("M05")
def test_target_network_is_copied_exactly_once_in_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner(target_period_updates=10, lr=0.0)
    copied_at: list[int] = []
    monkeypatch.setattr(learner, "copy_to_target", lambda: copied_at.append(learner.updates))
    for _ in range(35):
        learner.update(make_batch(1))
    assert copied_at == [10, 20, 30]


@pytest.mark.fault("D-ok.target")
def test_target_network_stands_still_between_copies() -> None:
    learner = make_learner(target_period_updates=3)
    seen = []
    for _ in range(6):
        learner.update(make_batch())
        seen.append(learner.target(frames(1))[0, 0].item())
    assert seen[0] == seen[1] != seen[2] == seen[3] == seen[4] != seen[5]


def test_target_network_equals_the_online_one_after_a_copy() -> None:
    learner = make_learner(target_period_updates=3)
    for _ in range(3):
        learner.update(make_batch())
    assert torch.equal(learner.target(frames(2)), learner.online(frames(2)))


@pytest.mark.fault("W02")
def test_sum_is_the_mean_times_the_batch_size() -> None:
    moved = {name: movement(make_learner(reduction=name), make_batch(8)) for name in ("sum", "mean")}
    torch.testing.assert_close(moved["sum"], 8 * moved["mean"], rtol=1e-4, atol=1e-6)


@pytest.mark.fault("M06")
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_minibatch_in_parts_moves_the_weights_as_the_whole_does(reduction: str, parts: int) -> None:
    weight = torch.linspace(0.2, 1.0, 8)
    whole = movement(make_learner(reduction=reduction), make_batch(8, weight=weight))
    added = movement(make_learner(reduction=reduction, accumulate=parts), make_batch(8, weight=weight))
    assert whole.abs().max() > 1e-3
    torch.testing.assert_close(added, whole, rtol=1e-4, atol=1e-7)


@pytest.mark.fault("M06")
def test_minibatch_in_parts_reports_metrics_and_errors_of_the_whole() -> None:
    rule = double_dqn_target
    whole, added = (make_learner(accumulate=n, target_rule=rule).update(make_batch(8)) for n in (1, 4))
    torch.testing.assert_close(added.priorities, whole.priorities)
    assert added.metrics.keys() == whole.metrics.keys()
    for name, value in whole.metrics.items():
        torch.testing.assert_close(added.metrics[name], value, msg=name)


@pytest.mark.fault("M06")
def test_minibatch_in_parts_is_one_update_of_one_gradient() -> None:
    learner = make_learner(
        optimizer=RMSPROP, accumulate=4, target_period_updates=2, max_grad_norm=0.01, lr=1.0
    )
    plain = make_learner(accumulate=4, max_grad_norm=0.01, lr=1.0)
    assert movement(plain, make_batch(8)).norm().item() == pytest.approx(0.01, rel=1e-3)
    learner.update(make_batch(8))
    assert learner.updates == 1
    assert all(weight.grad is None for weight in learner.online.parameters())


@pytest.mark.fault("D03")
@pytest.mark.parametrize("place", [0, 7])
def test_part_without_a_finite_gradient_keeps_the_whole_minibatch_from_the_weights(place: int) -> None:
    learner = make_learner(loss="mse", accumulate=4)
    rewards = torch.zeros(8)
    rewards[place] = float("nan")
    assert movement(learner, make_batch(8, r_t=rewards)).abs().max() == 0.0


@pytest.mark.fault("D-ok.weights")
def test_weights_multiply_each_transitions_loss_before_the_reduction() -> None:
    moved = movement(make_learner(), make_batch(2, weight=torch.tensor([0.0, 3.0])))
    only = {name: getattr(make_batch(2), name)[1:] for name in ("s_tm1", "a_tm1", "r_t", "discount_t", "s_t")}
    alone = movement(make_learner(), make_batch(1, **only))
    torch.testing.assert_close(moved, 3 * alone, rtol=1e-4, atol=1e-6)


def test_loss_reported_is_the_mean_over_transitions_whatever_the_reduction() -> None:
    found = {
        make_learner(reduction=name).update(make_batch(8)).metrics["loss"].item() for name in ("sum", "mean")
    }
    assert len(found) == 1


def test_metrics_are_of_the_networks_before_the_step() -> None:
    learner, batch = make_learner(), make_batch()
    with torch.no_grad():
        q_tm1, q_t = learner.online(batch.s_tm1), learner.target(batch.s_t)
        chosen = q_tm1[torch.arange(4), batch.a_tm1]
        error = batch.r_t + batch.discount_t * q_t.max(dim=1).values - chosen
    metrics = learner.update(batch).metrics
    expected = {
        "loss": rules.huber(error).mean(),
        "mean_q": chosen.mean(),
        "max_q": q_tm1.max(),
        "mean_abs_td_error": error.abs().mean(),
    }
    for name, value in expected.items():
        torch.testing.assert_close(metrics[name], value, msg=name)


def test_errors_of_each_transition_come_out_for_the_replay() -> None:
    learner, batch = make_learner(), make_batch()
    with torch.no_grad():
        chosen = rules.gather_q(learner.online(batch.s_tm1), batch.a_tm1)
        expected = (target_values(dqn_target(batch, learner.online, learner.target, stream())) - chosen).abs()
    torch.testing.assert_close(learner.update(batch).priorities, expected)


@pytest.mark.fault("P15")
def test_gradient_norm_reported_is_the_norm_before_clipping() -> None:
    unclipped = make_learner().update(make_batch()).metrics["grad_norm"]
    clipped = make_learner(max_grad_norm=0.001).update(make_batch()).metrics["grad_norm"]
    assert clipped == unclipped > 0.001


def test_gradients_are_scaled_down_to_the_largest_norm() -> None:
    moved = movement(make_learner(max_grad_norm=0.01, lr=1.0), make_batch())
    assert moved.norm().item() == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("max_grad_norm", [0.01, 0.3, 1_000.0])
def test_clipped_gradients_equal_those_computed_in_double_precision(max_grad_norm: float) -> None:
    raw = -movement(make_learner(lr=1.0), make_batch()).double()
    norm = raw.square().sum().sqrt()
    expected = raw * min(1.0, max_grad_norm / float(norm))
    clipped = -movement(make_learner(lr=1.0, max_grad_norm=max_grad_norm), make_batch()).double()
    assert 0.3 < norm < 1_000
    torch.testing.assert_close(clipped, expected, rtol=1e-3, atol=1e-7)
    assert clipped.norm() <= max_grad_norm * (1 + 1e-5)


def test_norm_just_below_the_largest_leaves_gradients_as_multiplying_does() -> None:
    norm = float(make_learner().update(make_batch()).metrics["grad_norm"])
    moved = [
        movement(make_learner(lr=1.0, max_grad_norm=norm * share), make_batch())
        for share in (0.999, 1.0, 1.001)
    ]
    unclipped = movement(make_learner(lr=1.0), make_batch())
    assert [bool((one == unclipped).all()) for one in moved] == [False, False, True]


def test_no_clipping_leaves_gradients_to_the_bit() -> None:
    learner = make_learner(lr=1.0)
    before, batch = flat(learner), make_batch()
    q_tm1 = learner.online(batch.s_tm1)
    with torch.no_grad():
        target = learner.target(batch.s_t).amax(dim=1) * batch.discount_t + batch.r_t
    error = target - rules.gather_q(q_tm1, batch.a_tm1)
    gradient = torch.autograd.grad(rules.huber(error).sum(), list(learner.online.parameters()))
    learner.update(batch)
    assert torch.equal(flat(learner), before - torch.cat([part.flatten() for part in gradient]))


@pytest.mark.fault("D-ok.double")
def test_double_asks_the_online_network_which_action_and_the_target_network_how_good() -> None:
    learner, batch = make_learner(), make_batch()
    with torch.no_grad():
        learner.online.head.output.bias.copy_(torch.tensor([0.0, 99.0, 0.0]))
        value = target_values(double_dqn_target(batch, learner.online, learner.target, stream()))
        expected = batch.r_t + batch.discount_t * learner.target(batch.s_t)[:, 1]
    assert torch.equal(value, expected)


@pytest.mark.fault("P02")
def test_rewards_of_a_million_leave_finite_weights() -> None:
    learner = make_learner(optimizer=RMSPROP)
    for _ in range(3):
        learner.update(make_batch(r_t=torch.tensor([1e6, -1e6, 1e6, 0.0])))
    assert torch.isfinite(flat(learner)).all()


@pytest.mark.fault("D21")
def test_learning_fits_a_minibatch_shown_again_and_again() -> None:
    learner, batch = make_learner(optimizer=RMSPROP), make_batch(discount_t=torch.zeros(4))
    losses = [learner.update(batch).metrics["loss"].item() for _ in range(60)]
    assert losses[-1] < 0.01 * losses[0]


def test_loaded_learner_goes_on_as_the_saved_one_would() -> None:
    saved = make_learner(optimizer=RMSPROP, target_period_updates=4)
    for _ in range(6):
        saved.update(make_batch())
    loaded = make_learner(optimizer=RMSPROP, target_period_updates=4)
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    for learner in (saved, loaded):
        for _ in range(3):
            learner.update(make_batch())
    assert torch.equal(flat(saved), flat(loaded))
    assert torch.equal(saved.target(frames(2)), loaded.target(frames(2)))


@pytest.mark.fault("P05")
def test_state_without_a_layer_is_refused_by_name() -> None:
    learner = make_learner()
    state = learner.state_dict()
    del state["target"]["torso.hidden.bias"]
    with pytest.raises(RuntimeError, match=r"torso\.hidden\.bias"):
        learner.load_state_dict(state)


OPTIMIZERS = {
    "deepmind_rmsprop": RMSPROP,
    "adam": partial(adam, learning_rate=0.01, epsilon=1.5e-4, beta1=0.9, beta2=0.999),
    "torch_rmsprop": partial(torch_rmsprop, learning_rate=0.01, epsilon=0.01, smoothing=0.95, momentum=0.9),
}
BAD = {
    "nan": make_batch(r_t=torch.tensor([0.0, float("nan"), 0.0, 0.0])),
    "inf": make_batch(r_t=torch.tensor([0.0, float("inf"), 0.0, 0.0])),
    "overflow": make_batch(r_t=torch.full((4,), 1e38)),
}
"""Minibatches without a finite gradient of the squared error."""


def state_digest(learner: Learner) -> str:
    state = learner.state_dict()
    return tree_digest({name: state[name] for name in ("online", "optimizer")})


@pytest.mark.fault("D03", "P14")
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_gradient_that_is_not_finite_changes_no_bit_of_weights_or_optimizer(optimizer, bad) -> None:
    learner = make_learner(optimizer=OPTIMIZERS[optimizer], loss="mse", max_grad_norm=10.0)
    learner.update(make_batch())
    before = state_digest(learner)
    learner.update(BAD[bad])
    assert state_digest(learner) == before
    learner.update(make_batch())
    assert state_digest(learner) != before


@pytest.mark.fault("D03")
@pytest.mark.gpu
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_gradient_that_is_not_finite_changes_nothing_on_a_gpu(optimizer) -> None:
    cuda = torch.device("cuda")
    learner = make_learner(optimizer=OPTIMIZERS[optimizer], loss="mse", max_grad_norm=10.0, device=cuda)
    learner.update(make_batch().to(cuda))
    before = state_digest(learner)
    learner.update(BAD["nan"].to(cuda))
    assert state_digest(learner) == before


@pytest.mark.fault("D03")
def test_gradients_in_a_row_that_are_not_finite_are_counted_and_a_finite_one_ends_the_count() -> None:
    learner = make_learner(loss="mse")
    found = [
        learner.update(batch).metrics["nonfinite_gradients"].item()
        for batch in (make_batch(), BAD["nan"], BAD["inf"], make_batch(), BAD["nan"])
    ]
    assert found == [0, 1, 2, 0, 1]


@pytest.mark.fault("D03")
def test_count_is_part_of_the_state() -> None:
    saved, loaded = make_learner(loss="mse"), make_learner(loss="mse")
    saved.update(BAD["nan"])
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    assert loaded.update(BAD["nan"]).metrics["nonfinite_gradients"] == 2


@pytest.mark.fault("M05")
def test_update_that_is_skipped_counts_for_the_copies_to_the_target_network() -> None:
    learner = make_learner(loss="mse", target_period_updates=3)
    for batch in (make_batch(), BAD["nan"], BAD["nan"]):
        learner.update(batch)
    assert learner.updates == 3
    assert torch.equal(learner.target(frames(2)), learner.online(frames(2)))


@pytest.mark.fault("D03")
def test_error_that_is_not_finite_is_reported_and_leaves_the_others_as_they_are() -> None:
    errors = make_learner().update(BAD["nan"]).priorities
    assert errors.isfinite().tolist() == [True, False, True, True]


def test_gradients_of_an_update_that_was_broken_off_are_not_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, other = (make_learner(optimizer=ADAM) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(learner.optimizer, "step", partial(signal.raise_signal, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            learner.update(make_batch(8, r_t=torch.full((8,), 5.0)))
    for each in (learner, other):
        each.update(make_batch(8))
    assert torch.equal(flat(learner), flat(other))
