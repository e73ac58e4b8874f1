"""What networks predict of returns, and what the three kinds have in common."""

import pytest
import torch
from parts import frames, make_batch, stream

from atari_dqn.agent.diagnostics import TransitionDiagnostics
from atari_dqn.agent.distributions import (
    Categorical,
    CategoricalValue,
    Quantiles,
    QuantileValue,
    Scalar,
    ScalarValue,
    ValueDistribution,
    ValueLayer,
)
from atari_dqn.agent.heads import DuelingHead, LinearHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.iqn import ImplicitQuantileNetwork
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import NatureTorso

LAYERS: dict[str, ValueLayer] = {
    "value": ScalarValue(),
    "c51": CategoricalValue(v_min=-10.0, v_max=10.0, num_atoms=51),
    "qr_dqn": QuantileValue(num_quantiles=20),
}
KINDS = (*LAYERS, "iqn")


def make(kind: str, *, dueling: bool = False, precision: str = "fp32") -> QNetwork:
    head_type = DuelingHead if dueling else LinearHead
    torso = NatureTorso(stack=4, frame_shape=(36, 36), streams=head_type.streams)
    size = LAYERS[kind].size if kind in LAYERS else 1
    head = head_type(torso.num_features, 3, size)
    if kind == "iqn":
        network: QNetwork = ImplicitQuantileNetwork(
            torso,
            head,
            precision=precision,
            num_quantiles=6,
            num_target_quantiles=5,
            num_policy_quantiles=4,
        )
    else:
        network = QNetwork(torso, head, LAYERS[kind], precision=precision)
    initialize(network, init="he_uniform", generator=stream(seed=1))
    return network


def q_of(prediction: ValueDistribution) -> torch.Tensor:
    points, mass = prediction.distribution()
    return (points * mass).sum(dim=2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dueling", [False, True])
def test_action_values_are_the_means_of_the_distributions_that_are_shown(kind: str, dueling: bool) -> None:
    prediction = make(kind, dueling=dueling).distribution(frames(5))
    assert prediction.q_values().shape == (5, 3)
    torch.testing.assert_close(q_of(prediction), prediction.q_values(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_masses_that_are_shown_add_up_to_one_and_points_are_in_order(kind: str) -> None:
    points, mass = make(kind).distribution(frames(2)).distribution()
    torch.testing.assert_close(mass.sum(dim=2), torch.ones(2, 3))
    assert (points.diff(dim=2) >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_network_called_plainly_repeats_to_the_bit(kind: str) -> None:
    network = make(kind)
    assert torch.equal(network(frames(3)), network(frames(3)))


@pytest.mark.fault("W05")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_gradient_flows_to_every_parameter_of_every_kind(kind: str, precision: str) -> None:
    network = make(kind, precision=precision, dueling=True)
    network.predicted_distribution(frames(16), stream()).outputs.square().sum().backward()
    missing = [name for name, w in network.named_parameters() if w.grad is None or not w.grad.any()]
    assert missing == []


@pytest.mark.parametrize("kind", KINDS)
def test_weights_alone_are_in_a_networks_state(kind: str) -> None:
    network = make(kind)
    assert set(network.state_dict()) == {name for name, _ in network.named_parameters()}


def test_categorical_value_of_one_sure_atom_is_that_atom() -> None:
    logits = torch.full((1, 2, 3), -1e4)
    logits[0, 0, 2] = logits[0, 1, 0] = 1e4
    assert Categorical(logits, torch.tensor([-1.0, 0.0, 1.0])).q_values().tolist() == [[1.0, -1.0]]


def test_quantiles_of_qr_dqn_are_at_the_middles_of_equal_parts() -> None:
    assert QuantileValue(num_quantiles=4).fractions.tolist() == [[0.125, 0.375, 0.625, 0.875]]


def test_value_of_quantiles_is_their_mean() -> None:
    outputs = torch.tensor([[[1.0, 2.0, 6.0]]])
    assert Quantiles(outputs, torch.zeros(1, 3)).q_values().tolist() == [[3.0]]


def test_value_is_known_as_one_point() -> None:
    points, mass = Scalar(torch.tensor([[[5.0], [6.0]]])).distribution()
    assert (points.tolist(), mass.tolist()) == ([[[5.0], [6.0]]], [[[1.0], [1.0]]])


@pytest.mark.parametrize(
    ("purpose", "count"), [("predicted_distribution", 6), ("target_distribution", 5), ("distribution", 4)]
)
def test_implicit_network_draws_as_many_fractions_as_the_purpose_has(purpose: str, count: int) -> None:
    found = getattr(make("iqn"), purpose)(frames(2), stream())
    assert isinstance(found, Quantiles)
    assert (found.outputs.shape[2], found.fractions.shape) == (count, (2, count))


def test_q_values_with_a_target_have_fractions_of_their_own() -> None:
    network, (one, other) = make("iqn"), (stream(), stream())
    found, q_values = network.target_distribution_and_q_values(frames(2), one)
    alone = network.target_distribution(frames(2), other)
    torch.testing.assert_close(found.outputs, alone.outputs, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(q_values, network.q_values(frames(2), other), rtol=1e-5, atol=1e-6)
    assert torch.equal(one.get_state(), other.get_state())


def test_fractions_are_drawn_for_each_state_and_evenly_spread_without_a_generator() -> None:
    network = make("iqn")
    drawn, even = network.distribution(frames(2), stream()), network.distribution(frames(2))
    assert isinstance(drawn, Quantiles)
    assert isinstance(even, Quantiles)
    assert len(set(drawn.fractions.flatten().tolist())) == 8
    assert even.fractions.tolist() == [[0.125, 0.375, 0.625, 0.875]] * 2


def test_quantile_at_a_fraction_does_not_depend_on_the_others_that_are_asked_for() -> None:
    network = make("iqn")
    assert isinstance(network, ImplicitQuantileNetwork)
    alone = network.features_at(frames(2), torch.tensor([[0.3], [0.3]]))
    with_others = network.features_at(frames(2), torch.tensor([[0.9, 0.3], [0.1, 0.3]]))
    torch.testing.assert_close(alone, with_others[1::2], rtol=1e-5, atol=1e-5)


def test_embedding_is_the_papers_fourth_equation() -> None:
    network = make("iqn")
    assert isinstance(network, ImplicitQuantileNetwork)
    pixels, tau = frames(1).float(), 0.3
    waves = torch.tensor([torch.cos(torch.tensor(torch.pi * i * tau)) for i in range(64)])
    phi = (network.embedding.weight @ waves + network.embedding.bias).relu()
    expected = network.torso.hidden_units(network.torso.encode(pixels) * phi)
    torch.testing.assert_close(
        network.features_at(frames(1), torch.tensor([[tau]])), expected, rtol=1e-4, atol=1e-5
    )


def test_shape_of_masses_is_their_spread_and_what_lies_on_the_edges() -> None:
    logits = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]]).log()
    shape = Categorical(logits, torch.tensor([-2.0, 0.0, 2.0])).statistics()
    # means −0.5 and 1.2, mean squares 3 and 3.2
    torch.testing.assert_close(shape["std_return"], torch.tensor([[2.75, 1.76]]).sqrt())
    torch.testing.assert_close(shape["lowest_atom_mass"], torch.tensor([[0.5, 0.1]]))
    torch.testing.assert_close(shape["highest_atom_mass"], torch.tensor([[0.25, 0.7]]))


def test_shape_of_quantiles_is_their_spread_and_which_neighbours_crossed() -> None:
    quantiles = torch.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 2.0, 2.0, 1.0, 7.0]]])
    fractions = torch.tensor([[0.1, 0.3, 0.5, 0.7, 0.9]])
    shape = Quantiles(quantiles, fractions).statistics()
    torch.testing.assert_close(shape["std_return"], torch.tensor([[2.0, 4.4]]).sqrt())
    torch.testing.assert_close(shape["crossed_share"], torch.tensor([[0.0, 0.5]]))


def test_value_has_no_shape() -> None:
    assert Scalar(torch.zeros(2, 3, 1)).statistics() == {}


def test_report_is_of_the_taken_actions() -> None:
    network, states = make("c51"), frames(4)
    shape, values = network.distribution(states).statistics(), network(states)
    batch = make_batch(s_tm1=states, a_tm1=torch.tensor([2, 0, 1, 1]))
    report = TransitionDiagnostics().prediction_report(network, batch)
    for name in ("std_return", "lowest_atom_mass", "highest_atom_mass"):
        assert report[name] == pytest.approx(shape[name][range(4), [2, 0, 1, 1]].mean().item())
    ordered = values.sort(dim=1).values
    assert report["action_gap"] == pytest.approx((ordered[:, 2] - ordered[:, 1]).mean().item())
