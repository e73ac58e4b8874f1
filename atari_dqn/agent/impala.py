"""The residual torso of IMPALA, with the parts that BTR adds to it.

B batch, S stacked frames, H×W one frame, C channels, F encoded numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.layer_norm import normalized
from atari_dqn.agent.spectral import SpectralConv2d
from atari_dqn.agent.torsos import MakeLinear, Pair, Torso, scaled
from atari_dqn.minibatch import Frames

MakeConvolution = Callable[..., nn.Conv2d]


class ResidualBlock(nn.Module):
    """A residual block of two convolutions, each after a ReLU."""

    def __init__(self, channels: int, convolution: MakeConvolution = nn.Conv2d) -> None:
        super().__init__()
        self.first = convolution(channels, channels, 3, padding=1)
        self.second = convolution(channels, channels, 3, padding=1)

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """Compute x + second(relu(first(relu(x))))."""
        added: Tensor = self.second(F.relu(self.first(F.relu(x))))
        return x + added


class AdaptiveMaxPool(nn.Module):
    """The maxima of n × n windows that cover an image, as `nn.AdaptiveMaxPool2d`.

    Window i of a side of L pixels is from ⌊i L / n⌋ to ⌈(i + 1) L / n⌉. On a GPU the gradient of PyTorch's
    layer is a sum in any order; this one repeats.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C N N"]:
        """Compute the maxima over rows, then those over columns."""
        for dim in (2, 3):
            parts = (x.narrow(dim, first, count) for first, count in self._windows(x.shape[dim]))
            x = torch.stack([part.amax(dim=dim) for part in parts], dim=dim)
        return x

    def _windows(self, side: int) -> list[tuple[int, int]]:
        """Compute the first pixel of each window, and its number of pixels."""
        firsts = [place * side // self.size for place in range(self.size)]
        ends = [-(-(place + 1) * side // self.size) for place in range(self.size)]
        return [(first, end - first) for first, end in zip(firsts, ends, strict=True)]


class ImpalaTorso(Torso):
    """Three sections: a convolution, pooling to half the size, two residual blocks. Espeholt et al. (2018).

    `width` multiplies the channels, as in the wide variants of Cobbe et al. (2020). BTR (Clark et al. 2024)
    has spectral normalisation of the residual blocks' convolutions, and pools the output to `pool_size` ×
    `pool_size` maxima. Its variant with layer normalisation has one after the first convolution of each
    section and one after the fully connected layer, each before what follows.
    """

    CHANNELS = (16, 32, 32)
    HIDDEN_UNITS = 256

    def __init__(
        self,
        *,
        stack: int,
        frame_shape: Pair,
        streams: int = 1,
        hidden_units: int | None = None,
        width: int = 1,
        spectral_norm: bool = False,
        pool_size: int = 0,
        layer_norm: bool = False,
        layer: MakeLinear = nn.Linear,
    ) -> None:
        super().__init__()
        section = partial(
            _section, convolution=SpectralConv2d if spectral_norm else nn.Conv2d, layer_norm=layer_norm
        )
        channels = stack
        self.sections = nn.ModuleList()
        for out in (width * each for each in self.CHANNELS):
            self.sections.append(section(channels, out, frame_shape))
            channels, frame_shape = out, (-(-frame_shape[0] // 2), -(-frame_shape[1] // 2))  # rounded up
        self.pool = AdaptiveMaxPool(pool_size) if pool_size else nn.Identity()
        height, wide = (pool_size, pool_size) if pool_size else frame_shape
        self._add_hidden(
            num_encoded=channels * height * wide,
            num_features=(hidden_units or self.HIDDEN_UNITS) * streams,
            layer=normalized(layer, streams) if layer_norm else layer,
        )

    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the sections, after a ReLU and the pooling."""
        x = scaled(frames)
        for section in self.sections:
            x = section(x)
        encoded: Tensor = self.pool(F.relu(x))
        return encoded.flatten(1)


def _section(
    before: int, out: int, frame_shape: Pair, *, convolution: MakeConvolution, layer_norm: bool
) -> nn.Sequential:
    """Make a section whose input has frames of `frame_shape`."""
    stem: nn.Module = nn.Conv2d(before, out, 3, padding=1)
    return nn.Sequential(
        nn.Sequential(stem, nn.LayerNorm((out, *frame_shape))) if layer_norm else stem,
        nn.MaxPool2d(3, stride=2, padding=1),
        ResidualBlock(out, convolution),
        ResidualBlock(out, convolution),
    )
