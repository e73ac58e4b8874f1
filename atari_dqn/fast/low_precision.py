"""Weights in the format that kernels multiply them in: copies that last until the weight changes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class LowPrecisionWeight:
    """A weight times a scale in another format, made again only when the weight has changed.

    A weight is used several times between two changes: by the target network thousands of times. Whether it
    changed is PyTorch's count of changes in place, which optimizers, `copy_` and `load_state_dict` raise.
    **A change through `.data` is not counted**, and the copy stays as it is until the next counted one:
    change a weight under `torch.no_grad()`. The weight that was converted is held until the next one is, so
    that no other can take its place unnoticed.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self._weight: Tensor | None = None
        self._key: tuple[int, int, torch.dtype] | None = None
        self._copy: Tensor | None = None

    def of(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Compute `weight × scale` in `dtype`, without a gradient."""
        if dtype == weight.dtype and self.scale == 1.0:
            return weight.detach()
        key = (weight.data_ptr(), weight._version, dtype)
        if self._copy is None or weight is not self._weight or key != self._key:
            with torch.inference_mode(False), torch.no_grad():  # what acting makes, learning uses
                self._copy = self._scaled(weight).to(dtype)
            self._weight, self._key = weight, key
        return self._copy

    def gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Compute the weight's gradient, given its copy's."""
        return self._scaled(gradient.to(weight.dtype))

    def _scaled(self, weight: Tensor) -> Tensor:
        return weight if self.scale == 1.0 else weight * self.scale

    def __deepcopy__(self, memo: dict[int, Any]) -> LowPrecisionWeight:
        """Make an empty one: a copied weight begins a count of its own."""
        return LowPrecisionWeight(self.scale)
