"""A reset changes exactly the weights that it should, and leaves no average of the optimizer."""

import pytest
import torch
from parts import make_batch, make_learner, make_network

from atari_dqn.agent.optimizer_state import averages_of
from atari_dqn.agent.optimizers import adam
from atari_dqn.agent.resets import Resets, is_of_encoder, last_reset
from atari_dqn.agent.self_prediction import SelfPredictiveNetwork

ADAM = {"learning_rate": 0.01, "epsilon": 1e-3, "beta1": 0.9, "beta2": 0.999}


def fresh(number: int, name: str):
    return make_network(seed=100 * number + (name == "target"))


def resets_of(learner, **values) -> Resets:
    return Resets(
        **{"period_updates": 2, "last_updates": 4, "keep": 0.5, "perturb": 0.25} | values,
        networks={"online": learner.online, "target": learner.target},
        optimizer=learner.optimizer,
        fresh=fresh,
    )


def weights_of(network) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in network.named_parameters()}


def test_every_weight_of_both_networks_is_shrunk_and_perturbed_or_fresh() -> None:
    learner = make_learner()
    before = {"online": weights_of(learner.online), "target": weights_of(learner.target)}
    resets_of(learner).reset(3)
    kept = replaced = 0
    for name, network in (("online", learner.online), ("target", learner.target)):
        new = weights_of(fresh(3, name))
        for key, weight in weights_of(network).items():
            if key.startswith("torso.convolutions"):
                kept += weight.numel()
                expected = 0.5 * before[name][key].double() + 0.25 * new[key].double()
                torch.testing.assert_close(weight.double(), expected, rtol=0, atol=1e-6)
            else:
                replaced += weight.numel()
                assert torch.equal(weight, new[key])
    # 32 · (4 · 8² + 1) + 64 · (32 · 4² + 1) + 64 · (64 · 3² + 1) of convolutions, 512 · 65 and 3 · 513
    assert (kept, replaced) == (2 * 77_984, 2 * (33_280 + 1_539))


def test_hidden_layer_head_and_prediction_are_fresh_and_the_transition_model_is_kept_in_part() -> None:
    plain = make_network()
    network = SelfPredictiveNetwork(plain.torso, plain.head, plain.value, num_actions=3)
    kept = {name.rpartition(".")[0] for name, _ in network.named_parameters() if is_of_encoder(name)}
    others = {name.rpartition(".")[0] for name, _ in network.named_parameters() if not is_of_encoder(name)}
    convolutions = {f"torso.convolutions.{number}" for number in range(3)}
    assert kept == {*convolutions, "transition.first", "transition.second"}
    assert others == {"torso.hidden", "head.output", "prediction"}


def test_optimizer_begins_again() -> None:
    learner = make_learner(optimizer=lambda weights: adam(weights, **ADAM))
    learner.update(make_batch())
    averages = list(averages_of(learner.optimizer))
    assert len(averages) == 3 * len(list(learner.online.parameters()))
    assert all(average.any() for average in averages if average.dim() == 0)
    resets_of(learner).reset(1)
    assert not any(average.any() for average in averages_of(learner.optimizer))


def test_online_and_target_network_get_weights_of_their_own() -> None:
    learner = make_learner()
    resets_of(learner).reset(1)
    assert not torch.equal(learner.online.head.output.weight, learner.target.head.output.weight)


def test_resets_are_due_after_each_period_up_to_the_last_one() -> None:
    learner = make_learner()
    resets, done = resets_of(learner), []
    for updates in range(9):
        before = weights_of(learner.online)["head.output.weight"]
        resets.after(updates)
        if not torch.equal(before, weights_of(learner.online)["head.output.weight"]):
            done.append(updates)
    assert done == [2, 4]


@pytest.mark.parametrize(("updates", "until"), [(0, 2), (1, 1), (2, 2), (3, 1)])
def test_updates_are_taken_together_up_to_the_next_reset(updates: int, until: int) -> None:
    assert resets_of(make_learner()).updates_until(updates) == until


def test_after_the_last_reset_nothing_is_due() -> None:
    assert resets_of(make_learner()).updates_until(4) > 1_000_000_000


def test_latest_reset_of_a_number_of_updates() -> None:
    found = [last_reset(updates, period_updates=10, last_updates=25) for updates in (0, 9, 10, 24, 25, 99)]
    assert found == [0, 0, 10, 20, 20, 20]
