"""The contract of every network and optimizer a spec can name."""

import pytest
import torch
from parts import make_network
from tiny import TINY_CATCH
from torch import nn

from atari_dqn.agent.torsos import Torso
from atari_dqn.assembly.parts import build_optimizer
from atari_dqn.assembly.registries import NETWORKS, OPTIMIZERS
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import load_spec


@pytest.mark.parametrize("name", list(NETWORKS))
@pytest.mark.parametrize(("side", "stack"), [(84, 4), (36, 1)])
def test_torso_of_every_kind_puts_out_as_many_features_as_it_says(name: str, side: int, stack: int) -> None:
    torso: Torso = NETWORKS.load(name)(stack=stack, frame_shape=(side, side))
    assert torso(torch.rand(2, stack, side, side)).shape == (2, torso.num_features)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_optimizer_of_every_kind_moves_every_weight_it_is_given(name: str) -> None:
    network = make_network()
    optimizer = build_optimizer(network, load_spec(TINY_CATCH, [f"optimizer.kind={name}"]).spec.optimizer)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert all((new < old).all() for new, old in zip(network.parameters(), before, strict=True))


@pytest.mark.fault("W13")
@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_optimizer_of_every_kind_has_one_group_with_the_specs_learning_rate(name: str) -> None:
    spec = load_spec(TINY_CATCH, [f"optimizer.kind={name}", "optimizer.learning_rate=0.125"]).spec
    optimizer = build_optimizer(make_network(), spec.optimizer)
    assert [group["lr"] for group in optimizer.param_groups] == [0.125]


@pytest.mark.parametrize(("key", "registry"), [("network.kind", NETWORKS), ("optimizer.kind", OPTIMIZERS)])
def test_schema_allows_exactly_the_names_that_are_registered(key: str, registry) -> None:
    assert set(KEYS[key].choices) == set(registry)


def test_every_torso_is_a_module_of_its_own() -> None:
    assert all(isinstance(NETWORKS.load(name)(stack=4, frame_shape=(84, 84)), nn.Module) for name in NETWORKS)
