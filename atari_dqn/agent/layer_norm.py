"""Layer normalisation in torsos. Ba et al. (2016), "Layer normalization".

B batch, C channels, H×W an image, F encoded numbers.
"""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agent.torsos import MakeHidden, MakeLinear, NatureTorso, scaled
from atari_dqn.minibatch import Frames


def normalized(layer: MakeLinear, streams: int) -> MakeHidden:
    """Return a factory of fully connected layers whose outputs are normalised, those of each stream alone.

    The hidden layers of a dueling head's streams are one layer (`Torso`), so that its units are `streams`
    groups.
    """
    return lambda inputs, units: nn.Sequential(layer(inputs, units), nn.GroupNorm(streams, units))


class ChannelNorm(nn.LayerNorm):
    """A layer normalisation of the channels of each pixel, as Flax's of an image."""

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        """Normalise the channels of each pixel; a view, because images are channels-last."""
        normal: Tensor = super().forward(x.permute(0, 2, 3, 1))
        return normal.permute(0, 3, 1, 2)


class NormalizedNatureTorso(NatureTorso):
    """The network of PQN: `NatureTorso` with a normalisation before each ReLU. Gallici et al. (2025)."""

    def __init__(self, *, streams: int = 1, layer: MakeLinear = nn.Linear, **settings: Any) -> None:
        super().__init__(streams=streams, layer=normalized(layer, streams), **settings)
        self.norms = nn.ModuleList(ChannelNorm(out) for out, _, _ in self.CONVOLUTIONS)

    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the convolutions, channel by channel."""
        x = scaled(frames)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = F.relu(norm(convolution(x)))
        return x.flatten(1)
