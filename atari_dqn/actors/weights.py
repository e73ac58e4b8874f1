"""The weights of a network as one flat buffer, in which they are published."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn


class FlatWeights:
    """Copies the weights and buffers of a network to a flat buffer and back, bit by bit."""

    def __init__(self, network: nn.Module) -> None:
        self._tensors: list[Tensor] = list(network.state_dict().values())
        assert all(tensor.dtype == torch.float32 for tensor in self._tensors)
        self._counts = [tensor.numel() for tensor in self._tensors]
        self.size = sum(self._counts)
        """Number of float32 in the buffer."""

    def read(self) -> Float32[np.ndarray, "n"]:
        """Return a copy of the weights."""
        flat: np.ndarray = torch.cat([tensor.reshape(-1) for tensor in self._tensors]).cpu().numpy()
        return flat

    @torch.no_grad()
    def write(self, flat: Float32[np.ndarray, "n"]) -> None:
        """Replace the weights."""
        parts = torch.split(torch.from_numpy(flat), self._counts)
        for tensor, part in zip(self._tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))
