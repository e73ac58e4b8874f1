import pytest
import torch
from parts import frames, make_network
from torch import nn

from atari_dqn.agent.heads import DuelingHead, SharedDuelingHead
from atari_dqn.agent.init import INITIALIZERS, initialize
from atari_dqn.agent.memory import LSTMMemory, RecurrentQNetwork
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.machine.sizes import NetworkShape, network_parameters


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def head_of(network) -> DuelingHead:
    assert isinstance(network.head, DuelingHead)
    return network.head


@pytest.mark.fault("D21")
def test_dueling_network_has_3292837_parameters_for_4_actions() -> None:
    network = make_network(side=84, actions=4, head=DuelingHead)
    parts = {
        "convolutions": 8_224 + 32_832 + 36_928,
        "hidden": 3_136 * 1_024 + 1_024,  # a layer of 512 units for each stream
        "value": 513,
        "advantage": 4 * 513,
    }
    assert count(network.torso.get_submodule("convolutions")) == parts["convolutions"]
    assert count(network.torso.get_submodule("hidden")) == parts["hidden"]
    assert (count(head_of(network).value), count(head_of(network).advantage)) == (513, 2_052)
    assert count(network) == sum(parts.values()) == 3_292_837


@pytest.mark.parametrize(("side", "stack", "actions"), [(36, 4, 3), (84, 1, 18)])
def test_plan_counts_the_parameters_of_a_dueling_network(side: int, stack: int, actions: int) -> None:
    planned = network_parameters(
        NetworkShape(
            kind="nature", screen_size_pixels=side, stack_frames=stack, num_actions=actions, hidden_units=512,
            dueling=True,
        )
    )  # fmt: skip
    torso = NatureTorso(stack=stack, frame_shape=(side, side), streams=2)
    assert count(torso) + count(DuelingHead(torso.num_features, actions)) == planned


def hidden_of(network) -> torch.Tensor:
    weight: torch.Tensor = network.torso.hidden.weight
    return weight


def test_xavier_uniform_bounds_each_stream_by_the_fans_of_its_own_layer() -> None:
    bound = (6 / (64 + 512)) ** 0.5  # both streams as one layer would have a bound of √(6 / (64 + 1,024))
    for stream in hidden_of(make_network(head=DuelingHead, init="xavier_uniform")).chunk(2):
        assert 0.95 * bound < stream.abs().max() <= bound


def test_orthogonal_draws_an_orthogonal_matrix_for_each_stream() -> None:
    for stream in hidden_of(make_network(head=DuelingHead, init="orthogonal")).chunk(2):
        torch.testing.assert_close(stream.T @ stream, 2 * torch.eye(64), rtol=0, atol=1e-5)


def test_streams_behind_a_memory_are_bounded_by_the_fans_of_their_own_layers() -> None:
    torso = NatureTorso(stack=1, frame_shape=(36, 36), layer=lambda *_: nn.Identity())
    network = RecurrentQNetwork(
        torso, LSTMMemory(64, 16), nn.Sequential(nn.Linear(16, 1_024), nn.ReLU()), DuelingHead(1_024, 3),
        num_actions=3, has_inputs=False,
    )  # fmt: skip
    initialize(network, init="xavier_uniform", generator=torch.Generator().manual_seed(0))
    bound = (6 / (16 + 512)) ** 0.5
    for stream in network.hidden[0].weight.chunk(2):
        assert 0.95 * bound < stream.abs().max() <= bound


def test_streams_that_share_a_layer_are_bounded_by_its_fans() -> None:
    bound = (6 / (64 + 512)) ** 0.5
    network = make_network(head=SharedDuelingHead, init="xavier_uniform")
    assert hidden_of(network).shape == (512, 64)
    assert 0.95 * bound < hidden_of(network).abs().max() <= bound


@pytest.mark.fault("D-ok.dueling")
def test_advantages_are_taken_from_their_mean() -> None:
    head = DuelingHead(4, 3)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.value.bias.fill_(10.0)
        head.advantage.bias.copy_(torch.tensor([1.0, 2.0, 6.0]))
    assert head(torch.zeros(1, 4)).squeeze(2).tolist() == [[8.0, 9.0, 13.0]]  # 10 + (1, 2, 6) − 3


@pytest.mark.fault("D-ok.dueling")
def test_constant_added_to_all_advantages_changes_no_value() -> None:
    network = make_network(head=DuelingHead)
    before = network(frames(4))
    with torch.no_grad():
        head_of(network).advantage.bias += 64.0
    torch.testing.assert_close(network(frames(4)), before, rtol=0, atol=1e-4)


def test_mean_over_actions_is_the_states_value() -> None:
    network = make_network(head=DuelingHead)
    values: list[torch.Tensor] = []
    head_of(network).value.register_forward_hook(lambda *call: values.append(call[2]))
    torch.testing.assert_close(network(frames(4)).mean(dim=1), values[0].squeeze(1), rtol=0, atol=1e-5)


def test_streams_share_the_convolutions_and_no_hidden_unit() -> None:
    network = make_network(head=DuelingHead)
    seen: dict[str, torch.Tensor] = {}
    head_of(network).value.register_forward_pre_hook(lambda _, given: seen.update(state=given[0]))
    head_of(network).advantage.register_forward_pre_hook(lambda _, given: seen.update(actions=given[0]))
    network.torso.register_forward_hook(lambda *call: seen.update(features=call[2]))
    network(frames(2))
    assert torch.equal(torch.cat([seen["state"], seen["actions"]], dim=1), seen["features"])
    assert seen["state"].shape == seen["actions"].shape == (2, 512)


@pytest.mark.fault("W05")
@pytest.mark.parametrize("init", sorted(INITIALIZERS))
def test_gradient_flows_to_every_parameter_of_a_dueling_network(init: str) -> None:
    network = make_network(init=init, head=DuelingHead)
    network(frames(16)).square().sum().backward()
    parameters = dict(network.named_parameters())
    assert [name for name, part in parameters.items() if part.grad is None or not part.grad.any()] == []


def test_dueling_network_keeps_its_head_in_fp32_with_a_bf16_torso() -> None:
    network = make_network(head=DuelingHead, precision="bf16")
    seen: list[torch.dtype] = []
    network.head.register_forward_pre_hook(lambda _, given: seen.append(given[0].dtype))
    assert (network(frames(2)).dtype, seen) == (torch.float32, [torch.float32])


@pytest.mark.fault("D13")
@pytest.mark.parametrize("name", ["head.value", "head.advantage"])
def test_both_output_layers_have_a_linear_gain(name: str) -> None:
    found = make_network(head=DuelingHead, actions=4).get_submodule(name)
    assert isinstance(found, nn.Linear)
    bound = (3 / 512) ** 0.5
    assert 0.95 * bound < found.weight.abs().max() <= bound
