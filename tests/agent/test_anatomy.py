"""A network whose parts are replaced, changed or watched computes what its parts do, quick ways or not."""

import copy
from collections.abc import Callable

import pytest
import torch
from parts import SIDE, frames, make_network, stream
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parametrize

from atari_dqn.agent.convolution import Convolution
from atari_dqn.agent.heads import DuelingHead
from atari_dqn.agent.linear import QuickLinear
from atari_dqn.agent.network import QNetwork, initialize
from atari_dqn.agent.structure import Anatomy
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.fast.cpu.library import layer_by_layer, left_to_torch

ACTIONS, UNITS = 3, 512


def dueling() -> QNetwork:
    return make_network(head=DuelingHead, actions=ACTIONS).requires_grad_(False)


def other_weights(network: QNetwork) -> dict[str, Tensor]:
    other = copy.deepcopy(network)
    initialize(other, init="he_uniform", generator=stream(seed=9))
    return other.state_dict()


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return 2.0 * weight


def parametrized(name: str) -> Callable[[QNetwork], object]:
    return lambda network: parametrize.register_parametrization(
        network.get_submodule(name), "weight", Doubled()
    )


def replaced(name: str, make: Callable[[], nn.Module]) -> Callable[[QNetwork], object]:
    parent, _, child = name.rpartition(".")
    return lambda network: setattr(network.get_submodule(parent), child, make().requires_grad_(False))


def strided(network: QNetwork) -> None:
    weight = network.head.advantage.weight
    weight.data = weight.data.T.contiguous().T


def with_a_forward_of_its_own(network: QNetwork) -> None:
    network.torso.hidden.forward = lambda seen, relu: seen.new_ones(len(seen), network.torso.num_features)


CHANGES: dict[str, Callable[[QNetwork], object]] = {
    "weights assigned": lambda network: network.load_state_dict(other_weights(network), assign=True),
    "weight replaced": lambda network: setattr(
        network.torso.hidden, "weight", nn.Parameter(-network.torso.hidden.weight, requires_grad=False)
    ),
    "convolution replaced": replaced(
        "torso.convolutions.1", lambda: Convolution(32, 64, 4, 2, relu=True)
    ),
    "convolution without a ReLU": replaced("torso.convolutions.1", lambda: Convolution(32, 64, 4, 2)),
    "hidden layer replaced": replaced("torso.hidden", lambda: QuickLinear(64, 2 * UNITS)),
    "head replaced": replaced("head", lambda: DuelingHead(2 * UNITS, 5)),
    "layer of the head replaced": replaced("head.advantage", lambda: nn.Linear(UNITS, 5)),
    "layer of the head replaced by two": replaced(
        "head.advantage", lambda: nn.Sequential(nn.Linear(UNITS, 8), nn.Linear(8, ACTIONS))
    ),
    "torso replaced": replaced("torso", lambda: NatureTorso(stack=4, frame_shape=(SIDE, SIDE), streams=2)),
    "convolution parametrized": parametrized("torso.convolutions.0"),
    "hidden layer parametrized": parametrized("torso.hidden"),
    "head parametrized": parametrized("head.advantage"),
    "forward of its own": with_a_forward_of_its_own,
    "numbers not in a row": strided,
}  # fmt: skip
EACH_CHANGE = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def as_its_parts_do(network: QNetwork) -> Tensor:
    with left_to_torch(), layer_by_layer():
        return network.head(network.torso(frames(5)).float()).squeeze(2)


@EACH_CHANGE
def test_network_that_is_changed_puts_out_what_its_parts_do(change: Callable[[QNetwork], object]) -> None:
    network = dueling()
    network(frames(5))  # what was found out of it then is of no use any more
    change(network)
    with torch.no_grad():
        torch.testing.assert_close(
            network(frames(5)).float(), as_its_parts_do(network).float(), rtol=1e-4, atol=1e-5
        )


@EACH_CHANGE
def test_network_that_is_changed_prefers_what_its_parts_do(change: Callable[[QNetwork], object]) -> None:
    network = dueling()
    with torch.no_grad():
        network.preferences(frames(5))
        change(network)
        found, expected = network.preferences(frames(5)).float(), as_its_parts_do(network).float()
    about = [values - values.mean(dim=1, keepdim=True) for values in (found, expected)]
    torch.testing.assert_close(*about, rtol=1e-4, atol=1e-5)


def test_head_in_another_format_is_refused() -> None:
    network = dueling()
    network.head.double()
    with torch.no_grad(), pytest.raises(RuntimeError, match="same dtype"):
        network(frames(1))


class NormedTorso(NatureTorso):
    def think(self, seen: Tensor) -> Tensor:
        return super().think(nn.functional.layer_norm(seen, seen.shape[1:]))


class LargestHead(DuelingHead):
    """Its advantages are over the largest of them."""

    def forward(self, features: Tensor) -> Tensor:
        outputs = super().forward(features)
        return (outputs - outputs.amax(dim=1, keepdim=True)).square()


class ScaledNetwork(QNetwork):
    def features(self, pixels: Tensor) -> Tensor:
        return -super().features(pixels)


def made(network: type[QNetwork] = QNetwork, torso: type = NatureTorso, head: type = DuelingHead) -> QNetwork:
    sees = torso(stack=4, frame_shape=(SIDE, SIDE), streams=2)
    whole = network(sees, head(sees.num_features, ACTIONS), precision="fp32")
    initialize(whole, init="he_uniform", generator=stream())
    return whole.requires_grad_(False)


@pytest.mark.parametrize(
    "classes", [{"torso": NormedTorso}, {"head": LargestHead}, {"network": ScaledNetwork}], ids=str
)
@pytest.mark.parametrize("ask", [QNetwork.forward, QNetwork.preferences])
def test_class_made_from_ours_computes_by_its_own_methods(classes: dict[str, type], ask) -> None:
    network = made(**classes)
    with torch.no_grad():
        found = ask(network, frames(5))
        expected = network.head(network.features(frames(5))).squeeze(2)
        plain = ask(made(), frames(5))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found, plain, rtol=1e-2)


@pytest.mark.parametrize("name", ["torso", "torso.hidden", "head", "head.value", "head.advantage"])
def test_hook_is_called_where_actions_are_preferred(name: str) -> None:
    network, called = dueling(), []
    network.get_submodule(name).register_forward_hook(lambda *_: called.append(name))
    with torch.no_grad():
        network.preferences(frames(1))
    assert called == [name]


def test_hook_on_all_modules_is_called_of_each() -> None:
    network, called = dueling(), []
    hook = register_module_forward_hook(lambda module, *_: called.append(module))
    with torch.no_grad():
        network(frames(1))
    hook.remove()
    assert {*map(id, called)} >= {
        *map(id, (*network.torso.convolutions, network.torso.hidden, network.head.value))
    }


def test_anatomy_of_a_copy_is_that_of_the_copy() -> None:
    parts = {"network": dueling()}
    parts["anatomy"] = Anatomy(parts["network"])
    copied = copy.deepcopy(parts)
    assert copied["anatomy"].holds()
    copied["network"].head = DuelingHead(2 * UNITS, ACTIONS)
    assert (copied["anatomy"].holds(), parts["anatomy"].holds()) == (False, True)


@pytest.mark.parametrize("ask", [QNetwork.forward, QNetwork.preferences])
def test_network_whose_biases_have_gaps_computes_what_one_without_gaps_does(ask) -> None:
    network = dueling()
    with torch.no_grad():
        expected = ask(network, frames(5))
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.bias.data = torch.stack([layer.bias.data, torch.ones_like(layer.bias)], dim=1)[:, 0]
        torch.testing.assert_close(ask(network, frames(5)), expected, rtol=1e-5, atol=1e-5)


def with_another_convolution() -> QNetwork:
    """Return a network one of whose convolutions took another's place after a first pass."""
    network = dueling().requires_grad_(True)
    network(frames(5))
    network.torso.convolutions[1] = Convolution(32, 64, 4, 2, relu=True)
    return network


def test_convolution_that_took_anothers_place_learns() -> None:
    network = with_another_convolution()
    network(frames(5)).sum().backward()
    assert network.torso.convolutions[1].weight.grad is not None


def test_whole_pass_gives_gradients_to_a_convolution_that_took_anothers_place() -> None:
    network = with_another_convolution()
    network(frames(5))
    assert {*map(id, network._in_one_call.parameters())} == {*map(id, network.parameters())}
