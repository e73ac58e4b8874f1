"""Torsos with methods or layers that ours do not have compute the same with and without acceleration."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.layer_norm import normalized
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.fast.acceleration import Acceleration

Pair = tuple[int, int]


class ELUTorso(NatureTorso):
    def hidden_units(self, encoded: Tensor) -> Tensor:
        return F.elu(self.hidden(encoded))


class ScaledTorso(NatureTorso):
    def forward(self, frames: Tensor) -> Tensor:
        return 2 * super().forward(frames)


class OtherConvolutions(NatureTorso):
    arguments: dict[str, Any]
    """Of all convolutions but the first."""

    def _convolution(self, before: int, out: int, kernel: int, stride: int, shape: Pair) -> nn.Conv2d:
        others = {} if before == 4 else self.arguments
        return nn.Conv2d(before, out, kernel, stride, **others)

    def _output_shape(self, shape: Pair, kernel: int, stride: int) -> Pair:
        others = {} if kernel == 8 else self.arguments
        convolution = nn.Conv2d(2, 2, kernel, stride, **others)
        height, width = convolution(torch.zeros(1, 2, *shape)).shape[2:]
        return height, width


def of_convolutions(**arguments: Any) -> type[NatureTorso]:
    return type("Torso", (OtherConvolutions,), {"arguments": arguments})


class SpectralTorso(NatureTorso):
    def _convolution(self, *sizes: Any) -> nn.Conv2d:
        convolution = nn.utils.spectral_norm(super()._convolution(*sizes))
        for tensor in (convolution.weight_orig.detach(), convolution.weight_u):  # which `initialize` leaves
            tensor.copy_(torch.arange(1.0, tensor.numel() + 1).view_as(tensor).sin())
        return convolution


class HalvedTorso(NatureTorso):
    hooked: str

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.get_submodule(self.hooked).register_forward_hook(lambda module, inputs, output: output / 2)


def halved(name: str) -> type[NatureTorso]:
    return type("Torso", (HalvedTorso,), {"hooked": name})


CASES = {
    "own units": ELUTorso,
    "own forward pass": ScaledTorso,
    "convolutions without biases": of_convolutions(bias=False),
    "replicated edges": of_convolutions(padding=1, padding_mode="replicate"),
    "padding by name": of_convolutions(padding="valid"),
    "dilated": of_convolutions(dilation=2),
    "two groups": of_convolutions(groups=2),
    "hidden layer without biases": partial(NatureTorso, layer=partial(nn.Linear, bias=False)),
    "normalised hidden layer": partial(NatureTorso, layer=normalized(nn.Linear, 1)),
    "spectrally normalised convolutions": SpectralTorso,
    "hooked torso": halved(""),
    "hooked convolution": halved("convolutions.2"),
    "hooked hidden layer": halved("hidden"),
}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("torso_type", CASES.values(), ids=CASES)
def test_torso_computes_by_its_own_methods_and_layers(torso_type: type[NatureTorso], device: str) -> None:
    frames = torch.randint(
        0, 256, (2, 4, 84, 84), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    outputs = []
    for is_fast in (False, True):
        torso = torso_type(stack=4, frame_shape=(84, 84))
        network = QNetwork(torso, LinearHead(torso.num_features, 6, size=51))
        initialize(network, init="he_uniform", generator=torch.Generator().manual_seed(0))
        if is_fast:
            Acceleration(torch.device(device)).network(network)  # which leaves it on the CPU
        outputs.append(network.distribution(frames).outputs)
    torch.testing.assert_close(outputs[1], outputs[0], rtol=1e-4, atol=1e-5)
