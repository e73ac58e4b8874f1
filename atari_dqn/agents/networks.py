"""Networks from stacked frames to action values: a torso that sees, a head that rates.

B batch, S stacked frames, H×W one frame, D features, A actions.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agents.init import INITIALIZERS, RELU_GAIN
from atari_dqn.agents.linear import OneDnnLinear

CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, kernel and stride of each layer. Mnih et al. (2015), Methods."""
HIDDEN_UNITS = 512


class Torso(nn.Module):
    """What sees: stacked frames in, as floats from 0 to 255, `num_features` features out."""

    num_features: int


class PixelConv2d(nn.Conv2d):
    """A convolution of pixels scaled to [0, 1] that takes them as they are: it scales its weights instead.

    The same function, without a pass over the frames; and 0 to 255 are exact in bf16, 0 to 1 are not.
    """

    def forward(self, pixels: Float[Tensor, "B S H W"]) -> Float[Tensor, "B C H2 W2"]:
        """Return the convolution of `pixels / 255`."""
        convolved: Tensor = self._conv_forward(pixels, self.weight / 255.0, self.bias)
        return convolved


class NatureTorso(Torso):
    """Three convolutions and one fully connected layer, each behind a ReLU. Mnih et al. (2015).

    A head of several streams gets a fully connected layer for each, computed as one: they see the same input.
    """

    def __init__(self, *, stack: int, frame_shape: tuple[int, int], streams: int = 1) -> None:
        super().__init__()
        channels = (stack, *(out for out, _, _ in CONVOLUTIONS))
        self.convolutions = nn.ModuleList(
            (nn.Conv2d if place else PixelConv2d)(channels[place], out, kernel, stride)
            for place, (out, kernel, stride) in enumerate(CONVOLUTIONS)
        )
        self.num_features = HIDDEN_UNITS * streams
        self.hidden = OneDnnLinear(_flat_features(frame_shape), self.num_features)

    def forward(self, x: Float[Tensor, "B S H W"]) -> Float[Tensor, "B D"]:
        """Return the features of pixels from 0 to 255."""
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        return F.relu(self.hidden(x.flatten(1)))


def _flat_features(frame_shape: tuple[int, int]) -> int:
    """Return what the last convolution puts out: 64 × 7 × 7 = 3,136 for 84 × 84 frames."""
    height, width = frame_shape
    for _, kernel, stride in CONVOLUTIONS:
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    return CONVOLUTIONS[-1][0] * height * width


class Head(nn.Module):
    """What rates: the features of `streams` fully connected layers in, a value per action out."""

    streams: int


class LinearHead(Head):
    """One value per action, by one linear layer."""

    streams = 1

    def __init__(self, num_features: int, num_actions: int) -> None:
        super().__init__()
        self.output = nn.Linear(num_features, num_actions)

    def forward(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B A"]:
        """Return the action values."""
        values: Tensor = self.output(features)
        return values


class DuelingHead(Head):
    """The state's value plus each action's advantage over their mean. Wang et al. (2016), eq. 9."""

    streams = 2

    def __init__(self, num_features: int, num_actions: int) -> None:
        super().__init__()
        units = num_features // self.streams
        self.value = nn.Linear(units, 1)
        self.advantage = nn.Linear(units, num_actions)

    def forward(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B A"]:
        """Return the action values; half of the features rates the state, half the actions."""
        state, actions = features.chunk(self.streams, dim=1)
        advantage = self.advantage(actions)
        values: Tensor = self.value(state) + advantage - advantage.mean(dim=1, keepdim=True)
        return values


class QNetwork(nn.Module):
    """Frames in, action values out. Frames become floats here and nowhere else.

    The torso runs in `precision`; the head always in fp32, because gaps between actions are often under one
    percent, less than bf16 resolves. Convolutions of fp32 run fastest channels-last, those of bf16 do not.
    """

    def __init__(self, torso: Torso, head: Head, *, precision: str) -> None:
        super().__init__()
        self.torso, self.head = torso, head
        self.bf16 = precision == "bf16"
        self.dtype = torch.bfloat16 if self.bf16 else torch.float32
        self.layout = torch.contiguous_format if self.bf16 else torch.channels_last
        self.to(memory_format=self.layout)  # type: ignore[call-overload]

    def forward(self, frames: UInt8[Tensor, "B S H W"]) -> Float[Tensor, "B A"]:
        """Return the action values of stacked frames."""
        values: Tensor = self.head(self.features(frames))
        return values

    def features(self, frames: UInt8[Tensor, "B S H W"]) -> Float[Tensor, "B D"]:
        """Return what the torso makes of stacked frames: its hidden units, after their ReLU."""
        # in this order a pass moves bytes, not floats
        pixels = frames.contiguous(memory_format=self.layout).to(self.dtype)
        with torch.autocast(frames.device.type, torch.bfloat16, enabled=self.bf16):
            features: Tensor = self.torso(pixels)
        return features.float()


@torch.inference_mode()
def dead_unit_share(network: QNetwork, frames: UInt8[Tensor, "B S H W"]) -> float:
    """Return the share of hidden units that are 0 for every one of these stacked frames."""
    return float((network.features(frames) == 0).all(dim=0).float().mean())


def initialize(network: QNetwork, *, init: str, generator: torch.Generator) -> None:
    """Draw every weight of a network from `generator`, in the order its layers are listed."""
    fill = INITIALIZERS[init]
    for part, gain in ((network.torso, RELU_GAIN), (network.head, 1.0)):
        for layer in part.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                fill(layer, gain, generator)
