"""Spectral normalisation of convolutions. Miyato et al. (2018), "Spectral normalization for GANs".

PyTorch's parametrization is not used: it iterates whenever a network in training mode is applied, in acting
and for the target network too, begins with vectors of the global random stream, and holds a weight that
`initialize` cannot fill. C2 output channels, K weights of one output channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

SQUARINGS = 10
VECTORS = ("left", "right")
"""The names of the buffers that are saved with a network although no optimizer changes them."""


class SpectralConv2d(nn.Conv2d):
    """A convolution whose weight matrix W[C2, K] is divided by its largest singular value σ = uᵀ W v.

    u and v, the singular vectors `left` and `right`, are constant in forward passes. `iterate` moves them
    toward those of a changed weight.
    """

    left: Float[Tensor, "C2"]
    right: Float[Tensor, "K"]

    def __init__(self, before: int, out: int, kernel: int, *, padding: int) -> None:
        super().__init__(before, out, kernel, padding=padding)
        self.register_buffer("left", torch.empty(out))
        self.register_buffer("right", torch.empty(before * kernel**2))
        self.decompose()

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C2 H W"]:
        """Compute the convolution with W / σ."""
        y: Tensor = self._conv_forward(x, self.normalized_weight(), self.bias)
        return y

    def normalized_weight(self) -> Float[Tensor, "C2 C KH KW"]:
        """Compute W / σ, through whose σ the gradient flows. Miyato et al. (2018), eq. 9.

        σ is a sum of products, because autocast would compute matrix products in low precision.
        """
        sigma = (self.left[:, None] * self.right * self.weight.flatten(1)).sum()
        normalized: Tensor = self.weight / sigma
        return normalized

    @torch.no_grad()
    def decompose(self) -> None:
        """Set u and v to the singular vectors of a new weight."""
        left, _, right = torch.linalg.svd(self.weight.flatten(1).double(), full_matrices=False)
        self.left.copy_(left[:, 0])
        self.right.copy_(right[0])


def spectral_layers(network: nn.Module) -> list[SpectralConv2d]:
    """List the normalised convolutions of a network."""
    return [layer for layer in network.modules() if isinstance(layer, SpectralConv2d)]


def power_iteration(network: nn.Module) -> Callable[[], None]:
    """Return a function that makes the power iterations of every normalised convolution of a network."""
    by_shape: dict[torch.Size, list[SpectralConv2d]] = {}
    for layer in spectral_layers(network):
        by_shape.setdefault(layer.weight.shape, []).append(layer)

    def iterate_all() -> None:
        for layers in by_shape.values():
            iterate(layers)

    return iterate_all


@torch.no_grad()
def iterate(layers: Sequence[SpectralConv2d]) -> None:
    """Move u and v of layers of one shape toward the singular vectors of their weights, all layers at once.

    Each makes 2¹⁰ power iterations: u ← (WWᵀ)ⁿ u, v ← Wᵀu, normalised. Miyato et al. (2018), Algorithm 1.

    The power is computed by squaring. One iteration, as in the paper, follows a changing weight too
    slowly if its two largest singular values are close (docs/decisions/0064).
    """
    matrices = torch.stack([layer.weight.flatten(1) for layer in layers])
    lefts = torch.stack([layer.left for layer in layers])
    power = matrices @ matrices.mT
    for _ in range(SQUARINGS):
        power = power / power.norm(dim=(1, 2), keepdim=True)
        power = power @ power
    lefts = F.normalize((power @ lefts[..., None]).squeeze(-1), dim=1)
    rights = F.normalize((matrices.mT @ lefts[..., None]).squeeze(-1), dim=1)
    for layer, left, right in zip(layers, lefts, rights, strict=True):
        layer.left.copy_(left)
        layer.right.copy_(right)
