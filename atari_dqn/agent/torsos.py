"""Torsos: from stacked frames to features. Convolutions and a fully connected layer, each with a ReLU.

B batch, S stacked frames, H×W one frame, C channels, F encoded numbers, D features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.minibatch import Frames

MakeLinear = Callable[[int, int], nn.Linear]
MakeHidden = Callable[[int, int], nn.Module]
Pair = tuple[int, int]


class Torso(nn.Module, ABC):
    """An encoder, then a fully connected layer with `num_features` outputs.

    The hidden layers of a head's streams have the same input and are therefore computed as one layer.
    """

    num_encoded: int
    """F."""
    num_features: int
    """D."""
    hidden: nn.Module

    def _add_hidden(self, *, num_encoded: int, num_features: int, layer: MakeHidden) -> None:
        """Add the fully connected layer: after the convolutions, because weights are drawn in that order."""
        self.num_encoded, self.num_features = num_encoded, num_features
        self.hidden = layer(num_encoded, num_features)

    @abstractmethod
    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the convolutions; pixels are from 0 to 255."""

    def hidden_units(self, encoded: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        """Compute the hidden layer's units."""
        return F.relu(self.hidden(encoded))

    def forward(self, frames: Frames) -> Float[Tensor, "B D"]:
        """Compute the features of frames."""
        return self.hidden_units(self.encode(frames))


def scaled(frames: Frames) -> Float[Tensor, "B S H W"]:
    """Scale pixels to [0, 1], in the channels-last memory format, which suits convolutions."""
    return frames.contiguous(memory_format=torch.channels_last) / 255.0


class ConvolutionalTorso(Torso):
    """A stack of convolutions without padding."""

    CONVOLUTIONS: tuple[tuple[int, int, int], ...]
    """Channels, kernel and stride of each layer."""
    HIDDEN_UNITS: int

    def __init__(
        self,
        *,
        stack: int,
        frame_shape: Pair,
        streams: int = 1,
        hidden_units: int | None = None,
        layer: MakeHidden = nn.Linear,
    ) -> None:
        super().__init__()
        channels = (stack, *(out for out, _, _ in self.CONVOLUTIONS))
        self.convolutions = nn.ModuleList()
        for before, (out, kernel, stride) in zip(channels, self.CONVOLUTIONS, strict=False):
            self.convolutions.append(self._convolution(before, out, kernel, stride, frame_shape))
            frame_shape = self._output_shape(frame_shape, kernel, stride)
        height, width = frame_shape
        self._add_hidden(
            num_encoded=channels[-1] * height * width,
            num_features=(hidden_units or self.HIDDEN_UNITS) * streams,
            layer=layer,
        )

    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the convolutions, channel by channel."""
        x = scaled(frames)
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        return x.flatten(1)

    def _convolution(self, before: int, out: int, kernel: int, stride: int, shape: Pair) -> nn.Conv2d:
        del shape
        return nn.Conv2d(before, out, kernel, stride)

    def _output_shape(self, shape: Pair, kernel: int, stride: int) -> Pair:
        height, width = shape
        return (height - kernel) // stride + 1, (width - kernel) // stride + 1


class NatureTorso(ConvolutionalTorso):
    """Mnih et al. (2015), Methods: from 84 × 84 pixels to 64 × 7 × 7 = 3,136 encoded numbers."""

    CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    HIDDEN_UNITS = 512


class DataEfficientTorso(ConvolutionalTorso):
    """van Hasselt et al. (2019): from 84 × 84 pixels to 64 × 3 × 3 = 576 encoded numbers."""

    CONVOLUTIONS = ((32, 5, 5), (64, 5, 5))
    HIDDEN_UNITS = 256


class SamePadConv2d(nn.Conv2d):
    """A convolution with TensorFlow's "SAME" padding: the output has ⌈size / stride⌉ pixels on each side.

    If the padding is odd, the extra zero is on the right or below.
    """

    def __init__(self, before: int, out: int, kernel: int, stride: int, shape: Pair) -> None:
        super().__init__(before, out, kernel, stride)
        height, width = (max(0, (-(-size // stride) - 1) * stride + kernel - size) for size in shape)
        self.zeros = (height // 2, height - height // 2, width // 2, width - width // 2)
        """Padding above, below, left and right of an image."""

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C2 H2 W2"]:
        """Compute the convolution of the padded images."""
        above, below, left, right = self.zeros
        return super().forward(F.pad(x, (left, right, above, below)))


class DopamineTorso(NatureTorso):
    """Dopamine's Nature convolutions with "SAME" padding: 64 × 11 × 11 = 7,744 encoded numbers."""

    def _convolution(self, before: int, out: int, kernel: int, stride: int, shape: Pair) -> nn.Conv2d:
        return SamePadConv2d(before, out, kernel, stride, shape)

    def _output_shape(self, shape: Pair, kernel: int, stride: int) -> Pair:
        del kernel
        height, width = shape
        return -(-height // stride), -(-width // stride)
