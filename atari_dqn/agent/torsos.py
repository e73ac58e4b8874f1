"""Torsos: what sees. Convolutions, then a fully connected layer, each behind a ReLU.

B batch, S stacked frames, H×W one frame, C channels, F numbers seen, D features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agent.convolution import Convolution, Pair
from atari_dqn.agent.convolution_stack import Chain
from atari_dqn.agent.linear import QuickLinear
from atari_dqn.agent.low_precision import rectified
from atari_dqn.agent.pixel_layout import channels_last, patches
from atari_dqn.minibatch import Frames, Pixels

MakeLinear = Callable[[int, int], nn.Linear]
"""Makes a fully connected layer of so many inputs and outputs."""


class Torso(nn.Module, ABC):
    """What sees: stacked frames in, of bytes or of floats from 0 to 255, `num_features` features out.

    A head of several streams gets a fully connected layer for each, computed as one: they see the same input.
    """

    num_seen: int
    """F."""
    num_features: int
    """D."""
    hidden: nn.Module

    def _finish(self, *, num_seen: int, num_features: int, layer: MakeLinear) -> None:
        """Add the fully connected layer behind what sees; last, so that weights are drawn in that order."""
        self.num_seen, self.num_features = num_seen, num_features
        self.hidden = layer(num_seen, num_features)

    def arrange(self, frames: Frames) -> Pixels:
        """Return pixels in the order in memory that `see` takes fastest."""
        return channels_last(frames)

    def takes_bytes(self, frames: Frames, dtype: torch.dtype) -> bool:
        """Return whether `see` takes frames as they are, not compiled: nothing need be arranged then."""
        del frames, dtype
        return False

    @abstractmethod
    def see(self, pixels: Pixels, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B F"]:
        """Return what the convolutions make of pixels, arranged or as they are, in the format `dtype`."""

    def think(self, seen: Float[Tensor, "B F"]) -> Float[Tensor, "B D"]:
        """Return the hidden layer's units."""
        units: Tensor = self.hidden(seen, relu=True)
        return units

    def think_partly(self, seen: Float[Tensor, "B F"], units: slice) -> Float[Tensor, "B D2"]:
        """Return some of the hidden layer's units alone, which is not noisy; they have no gradient here."""
        assert type(self.hidden) is QuickLinear
        return self.hidden.some(seen, units, relu=True)

    def forward(self, pixels: Pixels, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B D"]:
        """Return the features of pixels, arranged or as they are, in the format `dtype`."""
        return self.think(self.see(pixels, dtype))

    def _values(self, pixels: Pixels, dtype: torch.dtype) -> Float[Tensor, "B *pixels"]:
        arranged = self.arrange(pixels) if pixels.ndim == 4 else pixels
        return arranged.to(dtype)  # in this order a pass moves bytes, not floats


Convolutions = tuple[tuple[int, int, int], ...]
"""Channels, kernel and stride of each layer."""


class ConvolutionalTorso(Torso):
    """A chain of convolutions; no zeros around their inputs unless `_zeros` says so."""

    CONVOLUTIONS: Convolutions
    HIDDEN_UNITS: int

    def __init__(
        self,
        *,
        stack: int,
        frame_shape: tuple[int, int],
        streams: int = 1,
        hidden_units: int | None = None,
        layer: MakeLinear = QuickLinear,
    ) -> None:
        super().__init__()
        channels = (stack, *(out for out, _, _ in self.CONVOLUTIONS))
        zeros = self._zeros(frame_shape)
        layers = [
            Convolution(before, out, kernel, stride, padding=padding, more=more, pixels=place == 0, relu=True)
            for place, (before, (out, kernel, stride), (padding, more)) in enumerate(
                zip(channels[:-1], self.CONVOLUTIONS, zeros, strict=True)
            )
        ]
        self.convolutions = nn.ModuleList(layers)
        self.chain = Chain(self.convolutions)
        self._finish(
            num_seen=self._num_seen(frame_shape),
            num_features=(hidden_units or self.HIDDEN_UNITS) * streams,
            layer=layer,
        )

    def takes_bytes(self, frames: Frames, dtype: torch.dtype) -> bool:
        """Return whether `see` takes frames as they are, not compiled: nothing need be arranged then."""
        return self.chain.takes(frames, dtype)

    def see(self, pixels: Pixels, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B F"]:
        """Return what the convolutions make of pixels, arranged or as they are, in the format `dtype`."""
        if self.takes_bytes(pixels, dtype):
            return self.chain.see(pixels, dtype)
        x = self._values(pixels, dtype)
        for convolution in self.convolutions:
            x = convolution(x)
        return x.flatten(1)

    def _zeros(self, frame_shape: tuple[int, int]) -> Sequence[tuple[Pair, Pair]]:
        """Return of each convolution the zeros above and left, as below and right, and how many more here."""
        del frame_shape
        return [((0, 0), (0, 0))] * len(self.CONVOLUTIONS)

    def _num_seen(self, frame_shape: tuple[int, int]) -> int:
        return _flat_features(self.CONVOLUTIONS, frame_shape)


class NatureTorso(ConvolutionalTorso):
    """Mnih et al. (2015), Methods: 64 × 7 × 7 = 3,136 numbers seen of 84 × 84 pixels."""

    CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    HIDDEN_UNITS = 512


class DataEfficientTorso(ConvolutionalTorso):
    """van Hasselt et al. (2019): 64 × 3 × 3 = 576 numbers seen of 84 × 84 pixels.

    Its kernels do not overlap. On a CPU pixels are arranged in patches, and its convolutions are products.
    """

    CONVOLUTIONS = ((32, 5, 5), (64, 5, 5))
    HIDDEN_UNITS = 256

    def arrange(self, frames: Frames) -> Pixels:
        """Return pixels in the order in memory that `see` takes fastest."""
        if frames.device.type != "cpu":
            return super().arrange(frames)
        return patches(frames, tuple(kernel for _, kernel, _ in self.CONVOLUTIONS))

    def takes_bytes(self, frames: Frames, dtype: torch.dtype) -> bool:
        """Return False: products with patches are quicker."""
        del frames, dtype
        return False

    def see(self, pixels: Pixels, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B F"]:
        """Return what the convolutions make of pixels, arranged or as they are, in the format `dtype`."""
        x = self._values(pixels, dtype)
        for convolution in self.convolutions:
            x = convolution(x)
        return (x.transpose(1, 2) if x.ndim == 3 else x).flatten(1)  # channel by channel, either way


class DopamineTorso(NatureTorso):
    """Dopamine's: the Nature convolutions, each padded so that it puts out ⌈size / stride⌉ pixels a side.

    The zeros that make up an odd number have one more at the right and below. 64 × 11 × 11 = 7,744 numbers
    seen of 84 × 84 pixels.
    """

    def _zeros(self, frame_shape: tuple[int, int]) -> Sequence[tuple[Pair, Pair]]:
        zeros = []
        for _, kernel, stride in self.CONVOLUTIONS:
            height, width = (_zeros_around(size, kernel, stride) for size in frame_shape)
            zeros.append(((height // 2, width // 2), (height % 2, width % 2)))
            frame_shape = _scaled_down(frame_shape, stride)
        return zeros

    def _num_seen(self, frame_shape: tuple[int, int]) -> int:
        for _, _, stride in self.CONVOLUTIONS:
            frame_shape = _scaled_down(frame_shape, stride)
        height, width = frame_shape
        return self.CONVOLUTIONS[-1][0] * height * width


def _scaled_down(shape: Pair, stride: int) -> Pair:
    """Return ⌈size / stride⌉ of each size."""
    height, width = shape
    return -(-height // stride), -(-width // stride)


def _zeros_around(size: int, kernel: int, stride: int) -> int:
    """Return how many zeros go around `size` pixels, on both sides together, for ⌈size / stride⌉ outputs."""
    return max(0, (-(-size // stride) - 1) * stride + kernel - size)


def _flat_features(convolutions: Convolutions, frame_shape: tuple[int, int]) -> int:
    """Return what the last convolution puts out."""
    height, width = frame_shape
    for _, kernel, stride in convolutions:
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    return convolutions[-1][0] * height * width


class ResidualBlock(nn.Module):
    """x plus two convolutions of it, each behind a ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = Convolution(channels, channels, 3, padding=1, relu=True)
        self.second = Convolution(channels, channels, 3, padding=1)

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """Return x and what is added to it."""
        added: Tensor = self.second(self.first(rectified(x)))
        return x + added


class ImpalaTorso(Torso):
    """Three sections: a convolution, pooling to half the size, two residual blocks. Espeholt et al. (2018).

    `width` multiplies the channels, as in the wide variants of Cobbe et al. (2020).
    """

    CHANNELS = (16, 32, 32)
    HIDDEN_UNITS = 256

    def __init__(
        self,
        *,
        stack: int,
        frame_shape: tuple[int, int],
        streams: int = 1,
        hidden_units: int | None = None,
        width: int = 1,
        layer: MakeLinear = QuickLinear,
    ) -> None:
        super().__init__()
        channels = tuple(width * out for out in self.CHANNELS)
        self.sections = nn.ModuleList(
            nn.Sequential(
                Convolution(before, out, 3, padding=1, pixels=place == 0),
                nn.MaxPool2d(3, stride=2, padding=1),
                ResidualBlock(out),
                ResidualBlock(out),
            )
            for place, (before, out) in enumerate(zip((stack, *channels[:-1]), channels, strict=True))
        )
        height, wide = (-(-size // 2 ** len(channels)) for size in frame_shape)  # each pooling rounds up
        self._finish(
            num_seen=channels[-1] * height * wide,
            num_features=(hidden_units or self.HIDDEN_UNITS) * streams,
            layer=layer,
        )

    def see(self, pixels: Pixels, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B F"]:
        """Return what the sections make of pixels, arranged or as they are, in the format `dtype`."""
        x = self._values(pixels, dtype)
        for section in self.sections:
            x = section(x)
        return rectified(x).flatten(1)
