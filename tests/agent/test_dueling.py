import pytest
import torch
from parts import frames, make_network
from torch import nn

from atari_dqn.agent.heads import DuelingHead
from atari_dqn.agent.init import INITIALIZERS
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
