"""Dormant units are those of Sokar et al. (2023), and get new weights without a change of outputs."""

import pytest
import torch
from parts import frames, make_batch, make_learner, make_network
from torch.nn import functional as F

from atari_dqn.agent.heads import DuelingHead
from atari_dqn.agent.optimizers import adam
from atari_dqn.agent.redo import Recycled, ReDo, dormant_units

ADAM = {"learning_rate": 0.01, "epsilon": 1e-3, "beta1": 0.9, "beta2": 0.999}
CHANNEL, UNIT = 5, 7
UNITS = 32 + 64 + 64 + 512


def make_redo(network, optimizer, reports: list[Recycled]) -> ReDo:
    return ReDo(
        period_updates=10, threshold=0.0, online=network, optimizer=optimizer,
        frames=lambda _: frames(4, seed=3), fresh=lambda _: make_network(seed=9), report=reports.append,
    )  # fmt: skip


def silenced():
    """Return a learner one of whose channels and one of whose hidden units are always 0, after an update."""
    learner = make_learner(optimizer=lambda weights: adam(weights, **ADAM))
    learner.update(make_batch())
    with torch.no_grad():
        learner.online.torso.convolutions[1].bias[CHANNEL] = -1e6
        learner.online.torso.hidden.bias[UNIT] = -1e6
    return learner


def test_scores_are_shares_of_the_layers_mean_in_double_precision() -> None:
    units = torch.rand(3, 5, 2, 2, generator=torch.Generator().manual_seed(1)) * torch.tensor(
        [1.0, 0.02, 0.0, 0.5, 0.03]
    ).view(1, 5, 1, 1)
    means = [sum(units[:, u].flatten().tolist()) / 12 for u in range(5)]
    scores = [mean / (sum(means) / 5) for mean in means]
    for threshold in (0.0, 0.05, 0.1, 0.5):
        assert dormant_units(units, threshold).tolist() == [score <= threshold for score in scores]


def test_unit_that_is_active_in_few_states_is_dormant_in_those_without_it_alone() -> None:
    units = torch.zeros(256, 2)
    units[:, 0] = 1.0
    units[::64, 1] = 2.0  # in states 0, 64, 128 and 192
    # means 1 and 8 / 256 = 0.03125, of the layer 0.515625: scores 1.94 and 0.061
    assert dormant_units(units, 0.025).tolist() == [False, False]
    assert dormant_units(units[1:33], 0.025).tolist() == [False, True]


def test_recycling_units_that_are_zero_changes_no_q_value() -> None:
    learner, reports = silenced(), []
    before = learner.online(frames(4, seed=3))
    make_redo(learner.online, learner.optimizer, reports).after(10)
    torch.testing.assert_close(learner.online(frames(4, seed=3)), before)


def test_incoming_weights_are_fresh_outgoing_ones_are_zero_and_no_others_change() -> None:
    learner, reports = silenced(), []
    before = {name: weight.detach().clone() for name, weight in learner.online.named_parameters()}
    dead = zero_units(learner.online)
    make_redo(learner.online, learner.optimizer, reports).after(10)
    fresh = dict(make_network(seed=9).named_parameters())
    names = [*(f"torso.convolutions.{number}" for number in range(3)), "torso.hidden", "head.output"]
    for name, incoming, outgoing in zip(
        names, [*dead, torch.zeros(3, dtype=torch.bool)], [None, *dead], strict=True
    ):
        expected = before[f"{name}.weight"].clone()
        expected[incoming] = fresh[f"{name}.weight"][incoming]
        if outgoing is not None:  # one pixel of each channel is left for the hidden layer
            expected[:, outgoing] = 0
        assert torch.equal(learner.online.get_parameter(f"{name}.weight"), expected), name
    assert dead[1][CHANNEL]
    assert dead[3][UNIT]


def zero_units(network) -> list[torch.Tensor]:
    """Return which units of each layer are 0 for every state, computed here once more."""
    x, found = frames(4, seed=3) / 255, []
    for convolution in network.torso.convolutions:
        x = F.relu(convolution(x))
        found.append(x.detach().sum(dim=(0, 2, 3)) == 0)
    hidden = F.relu(network.torso.hidden(x.flatten(1))).detach()
    return [*found, hidden.sum(dim=0) == 0]


def test_averages_of_new_weights_begin_at_zero_and_others_stay() -> None:
    learner = silenced()
    weight = learner.online.torso.hidden.weight
    average = learner.optimizer.state[weight]["exp_avg_sq"]
    average.fill_(1.0)
    make_redo(learner.online, learner.optimizer, []).after(10)
    assert not average[UNIT].any()
    assert 0 < average.sum() < average.numel()


def test_report_counts_the_dormant_units() -> None:
    learner, reports = silenced(), []
    expected = sum(int(mask.sum()) for mask in zero_units(learner.online))
    make_redo(learner.online, learner.optimizer, reports).after(20)
    assert reports == [Recycled(updates=20, dormant=expected, units=UNITS)]
    assert expected >= 2


@pytest.mark.parametrize("updates", [1, 9, 11])
def test_between_periods_nothing_is_done(updates: int) -> None:
    learner, reports = silenced(), []
    make_redo(learner.online, learner.optimizer, reports).after(updates)
    assert reports == []


def test_unit_of_a_dueling_stream_is_scored_by_the_mean_of_its_own_stream() -> None:
    network, reports = make_network(head=DuelingHead), []
    with torch.no_grad():  # the units of the advantages are active, though a thousandth of those of the value
        network.torso.hidden.weight[512:] *= 0.001
    silent = int(zero_units(network)[3].sum())
    redo = ReDo(
        period_updates=1, threshold=0.025, online=network,
        optimizer=torch.optim.SGD(network.parameters(), 0.1), frames=lambda _: frames(4, seed=3),
        fresh=lambda _: make_network(seed=9, head=DuelingHead), report=reports.append,
    )  # fmt: skip
    redo.after(1)
    (report,) = reports
    assert silent <= report.dormant < silent + 100
    assert network.head.advantage.weight.count_nonzero() > 3 * 300


def test_units_of_both_dueling_streams_are_cut_from_their_own_layer() -> None:
    network = make_network(head=DuelingHead)
    with torch.no_grad():
        network.torso.hidden.bias[[UNIT, 512 + UNIT]] = -1e6
    redo = ReDo(
        period_updates=1, threshold=0.0, online=network, optimizer=torch.optim.SGD(network.parameters(), 0.1),
        frames=lambda _: frames(4, seed=3), fresh=lambda _: make_network(seed=9, head=DuelingHead),
        report=lambda _: None,
    )  # fmt: skip
    redo.after(1)
    assert not network.head.value.weight[:, UNIT].any()
    assert not network.head.advantage.weight[:, UNIT].any()
    assert network.head.value.weight.any()
