"""Observations of one frame: the fast network computes what the plain one does."""

import copy

import pytest
import torch
from torch import Tensor

from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.impala import ImpalaTorso
from atari_dqn.agent.init import initialize
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import DataEfficientTorso, DopamineTorso, NatureTorso, Torso
from atari_dqn.fast.acceleration import Acceleration
from atari_dqn.fast.cpu.library import units

TORSOS = (NatureTorso, DopamineTorso, DataEfficientTorso, ImpalaTorso)
SIDE = 44
pytestmark = pytest.mark.skipif(not units(), reason="no kernels of products on this machine")


def stream() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def values_and_gradients(network: QNetwork) -> list[Tensor]:
    """Return the q-values of three observations, and the gradient of their sum for each weight."""
    frames = torch.randint(0, 256, (3, 1, SIDE, SIDE), generator=stream(), dtype=torch.uint8)
    values = network.q_values(frames)
    return [values.detach(), *torch.autograd.grad(values.sum(), list(network.parameters()))]


@pytest.mark.parametrize("torso_type", TORSOS)
def test_fast_network_of_one_frame_has_the_values_and_gradients_of_the_plain_one(
    torso_type: type[Torso],
) -> None:
    torso = torso_type(stack=1, frame_shape=(SIDE, SIDE))
    plain = QNetwork(torso, LinearHead(torso.num_features, 4))
    initialize(plain, init="he_uniform", generator=stream())
    fast = Acceleration(torch.device("cpu")).network(copy.deepcopy(plain))
    for found, expected in zip(values_and_gradients(fast), values_and_gradients(plain), strict=True):
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
