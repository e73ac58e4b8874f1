"""Frames that do not fit the weights of a network raise an error, from the plain network and the fast one."""

import pytest
import torch
from torch import nn

from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import ConvolutionalTorso, DataEfficientTorso, DopamineTorso, NatureTorso
from atari_dqn.fast.acceleration import Acceleration
from atari_dqn.fast.cpu import library

TORSOS = (NatureTorso, DopamineTorso, DataEfficientTorso)
WRONG = {"size": (4, 60, 60), "too few channels": (2, 84, 84), "too many channels": (8, 84, 84)}
EACH_TORSO = pytest.mark.parametrize("torso_type", TORSOS)
EACH_WRONG = pytest.mark.parametrize("shape", WRONG.values(), ids=WRONG)


def make_network(torso_type: type[ConvolutionalTorso]) -> QNetwork:
    torso = torso_type(stack=4, frame_shape=(84, 84))
    return QNetwork(torso, LinearHead(torso.num_features, 6))


@pytest.fixture
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every processor plan with kernels; sizes are checked before a kernel is called."""
    monkeypatch.setattr(library, "_unit_for", lambda dtype: 0 if dtype == torch.float32 else None)


@EACH_WRONG
@EACH_TORSO
def test_plain_network_refuses_frames_that_do_not_fit(
    torso_type: type[ConvolutionalTorso], shape: tuple[int, ...]
) -> None:
    network = make_network(torso_type)
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied|channels"):
        network(torch.zeros(2, *shape, dtype=torch.uint8))


@pytest.mark.usefixtures("with_kernels")
@pytest.mark.parametrize("learns", [False, True])
@EACH_WRONG
@EACH_TORSO
def test_fast_network_refuses_frames_that_do_not_fit(
    torso_type: type[ConvolutionalTorso], shape: tuple[int, ...], learns: bool
) -> None:
    network = Acceleration(torch.device("cpu")).network(make_network(torso_type))
    assert type(network.torso) is not torso_type
    frames = torch.zeros(2, *shape, dtype=torch.uint8)
    with (
        torch.set_grad_enabled(learns),
        pytest.raises(ValueError, match=r"expected .* found size|wrong channels"),
    ):
        network(frames)


def test_fast_layer_refuses_rows_that_do_not_fit() -> None:
    layer = nn.Linear(64, 32)
    with pytest.raises(ValueError, match=r"expected 64 inputs of each row, found size \(3, 32\)"):
        torch.ops.atari_dqn.multiply(torch.zeros(3, 32), layer.weight.detach(), layer.bias.detach())
