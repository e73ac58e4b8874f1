import math

import pytest
import torch
from parts import frames, make_network
from torch import nn

from atari_dqn.agent.init import INITIALIZERS
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.machine.sizes import NetworkShape, network_parameters


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def layer(of: str, network: nn.Module) -> nn.Conv2d | nn.Linear:
    found = network.get_submodule(of)
    assert isinstance(found, nn.Conv2d | nn.Linear)
    return found


LAYERS = {"torso.convolutions.0": 256, "torso.convolutions.1": 512, "torso.convolutions.2": 576}
"""Fan-in of each convolution: 4·8·8, 32·4·4, 64·3·3."""
HIDDEN = LAYERS | {"torso.hidden": 64}  # one pixel of 64 channels is left of 36×36
ALL = HIDDEN | {"head.output": 512}


@pytest.mark.fault("D21")
def test_nature_network_has_1686180_parameters_for_4_actions() -> None:
    assert count(make_network(side=84, actions=4)) == 1_686_180


@pytest.mark.fault("D21")
def test_nature_network_has_1684128_parameters_before_its_output_layer() -> None:
    assert count(NatureTorso(stack=4, frame_shape=(84, 84))) == 1_684_128


@pytest.mark.fault("D-ok.features")
def test_convolutions_leave_3136_features_of_84_pixels() -> None:
    assert NatureTorso(stack=4, frame_shape=(84, 84)).hidden.in_features == 3_136


@pytest.mark.parametrize(("side", "stack", "actions"), [(36, 4, 3), (84, 1, 18), (100, 2, 6)])
def test_plan_counts_the_parameters_that_are_there(side: int, stack: int, actions: int) -> None:
    planned = network_parameters(
        NetworkShape(
            kind="nature", screen_size_pixels=side, stack_frames=stack, num_actions=actions, hidden_units=512
        )
    )
    torso = NatureTorso(stack=stack, frame_shape=(side, side))
    assert count(torso) + actions * 513 == planned


@pytest.mark.fault("D21")
def test_values_have_one_column_for_each_action() -> None:
    assert make_network(actions=5)(frames(2)).shape == (2, 5)


@pytest.mark.fault("W05")
@pytest.mark.parametrize("init", sorted(INITIALIZERS))
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_gradient_flows_to_every_parameter_at_the_start(init: str, precision: str) -> None:
    network = make_network(init=init, precision=precision)
    network(frames(16)).square().sum().backward()
    without = [
        name
        for name, parameter in network.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    assert without == []


@pytest.mark.fault("D-ok.bytes")
def test_bytes_count_as_numbers_from_0_to_1() -> None:
    network = make_network()
    stacks = frames(2)
    x = stacks / 255.0
    for place in range(3):
        found = layer(f"torso.convolutions.{place}", network)
        assert isinstance(found, nn.Conv2d)
        x = nn.functional.conv2d(x, found.weight, found.bias, found.stride).relu()
    expected = layer("torso.hidden", network)(x.flatten(1)).relu()
    torch.testing.assert_close(network.torso(stacks.float()), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.fault("D-ok.bytes")
def test_bytes_become_floats_in_the_network() -> None:
    network, seen = make_network(), []
    layer("torso.hidden", network).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    network(frames(1))
    assert seen == [torch.float32]


def test_bf16_torso_keeps_the_head_in_fp32() -> None:
    network = make_network(precision="bf16")
    seen: list[torch.Tensor] = []
    network.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    values = network(frames(2))
    assert (seen[0].dtype, values.dtype) == (torch.float32, torch.float32)


def test_bf16_torso_computes_in_bf16() -> None:
    network = make_network(precision="bf16")
    seen: list[torch.Tensor] = []
    network.torso.register_forward_hook(lambda *_: seen.append(_[2]))
    network(frames(2))
    assert seen[0].dtype == torch.bfloat16


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@torch.no_grad()
def test_weights_that_are_loaded_replace_those_a_network_has_computed_with(precision: str) -> None:
    network = make_network(precision=precision, seed=1)
    other, before = make_network(precision=precision, seed=2), network(frames(2))
    network.load_state_dict(other.state_dict())
    assert torch.equal(network(frames(2)), other(frames(2)))
    assert not torch.equal(network(frames(2)), before)


def test_bf16_values_are_close_to_fp32() -> None:
    fp32, bf16 = make_network(precision="fp32")(frames(8)), make_network(precision="bf16")(frames(8))
    torch.testing.assert_close(bf16, fp32, rtol=0.05, atol=0.02)


@pytest.mark.fault("P08")
@pytest.mark.parametrize(("name", "fan_in"), ALL.items())
def test_fan_in_uniform_fills_weights_and_biases_up_to_its_bound(name: str, fan_in: int) -> None:
    found = layer(name, make_network(init="fan_in_uniform"))
    bound = 1 / math.sqrt(fan_in)
    assert 0.95 * bound < found.weight.abs().max() <= bound
    assert 0 < found.bias.abs().max() <= bound


@pytest.mark.fault("D13")
@pytest.mark.parametrize(("name", "fan_in"), HIDDEN.items())
def test_he_uniform_gives_hidden_layers_the_gain_of_a_relu(name: str, fan_in: int) -> None:
    bound = math.sqrt(6 / fan_in)
    assert 0.95 * bound < layer(name, make_network(init="he_uniform")).weight.abs().max() <= bound


@pytest.mark.parametrize(
    ("name", "fans"), [("torso.convolutions.0", 4 * 64 + 32 * 64), ("head.output", 512 + 3)]
)
def test_xavier_uniform_is_bounded_by_both_fans_without_a_gain(name: str, fans: int) -> None:
    bound = math.sqrt(6 / fans)
    assert 0.95 * bound < layer(name, make_network(init="xavier_uniform")).weight.abs().max() <= bound


@pytest.mark.fault("D13")
def test_he_uniform_gives_the_output_layer_a_linear_gain() -> None:
    bound = math.sqrt(3 / 512)
    found = layer("head.output", make_network(init="he_uniform")).weight.abs().max()
    assert 0.95 * bound < found <= bound


@pytest.mark.fault("D13")
def test_orthogonal_gives_the_output_layer_a_linear_gain() -> None:
    weight = layer("head.output", make_network(init="orthogonal")).weight
    torch.testing.assert_close(weight @ weight.T, torch.eye(3), rtol=0, atol=1e-5)


@pytest.mark.fault("D13")
def test_orthogonal_gives_hidden_layers_the_gain_of_a_relu() -> None:
    weight = layer("torso.hidden", make_network(init="orthogonal")).weight
    torch.testing.assert_close(weight.T @ weight, 2 * torch.eye(64), rtol=0, atol=1e-5)


@pytest.mark.fault("P08")
@pytest.mark.parametrize("init", ["he_uniform", "xavier_uniform", "orthogonal"])
@pytest.mark.parametrize("name", ALL)
def test_other_initialisations_have_no_bias(init: str, name: str) -> None:
    assert not layer(name, make_network(init=init)).bias.any()


@pytest.mark.parametrize("init", sorted(INITIALIZERS))
def test_initial_weights_are_those_of_their_stream(init: str) -> None:
    values = [make_network(init=init, seed=seed)(frames(2)) for seed in (5, 5, 6)]
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])


@pytest.mark.parametrize("init", sorted(INITIALIZERS))
def test_initial_weights_do_not_depend_on_how_they_lie_in_memory(init: str) -> None:
    fp32, bf16 = make_network(init=init), make_network(init=init, precision="bf16")
    assert all(torch.equal(*pair) for pair in zip(fp32.parameters(), bf16.parameters(), strict=True))


def test_initial_weights_leave_the_global_stream_alone() -> None:
    make_network()
    before = torch.get_rng_state()
    torch.manual_seed(0)
    network = make_network()
    torch.manual_seed(1)
    other = make_network()
    torch.set_rng_state(before)
    assert torch.equal(network(frames(1)), other(frames(1)))


@pytest.mark.fault("P05")
def test_weights_of_another_network_are_refused_by_name() -> None:
    state = make_network().state_dict()
    state["head.value.weight"] = state.pop("head.output.weight")
    with pytest.raises(
        RuntimeError, match=r"Missing.*head\.output\.weight[\s\S]*Unexpected.*head\.value\.weight"
    ):
        make_network().load_state_dict(state)
