"""Caches of weights that are converted to the format of the kernels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class LowPrecisionWeight:
    """A copy of a weight times a scale in another format, renewed when the weight has changed.

    Between two changes a weight is used several times, that of a target network thousands of times. Changes
    are detected by PyTorch's version counter, which optimizers, `copy_` and `load_state_dict` increase.
    **A change through `.data` does not increase it**, and the copy stays outdated until the next change that
    does: change weights under `torch.no_grad()`. The cache holds a reference to the converted weight, so that
    no other tensor can get its address.
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
            with (
                torch.inference_mode(False),
                torch.no_grad(),
            ):  # a copy made in inference mode could not be used in training
                self._copy = self._scaled(weight).to(dtype)
            self._weight, self._key = weight, key
        return self._copy

    def gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Compute the gradient of the weight from the gradient of its copy."""
        return self._scaled(gradient.to(weight.dtype))

    def _scaled(self, weight: Tensor) -> Tensor:
        return weight if self.scale == 1.0 else weight * self.scale

    def __deepcopy__(self, memo: dict[int, Any]) -> LowPrecisionWeight:
        """Make an empty cache, because a copied weight has another version counter."""
        return LowPrecisionWeight(self.scale)
