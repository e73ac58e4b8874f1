"""The format that a layer computes in, and its weights in that format.

Weights, gradients and the optimizer are fp32. A layer computes in the format of what it is shown, fp32 or
bf16, and takes a copy of its weights in it; their gradients come back as fp32.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from atari_dqn.machine.hardware import cpu_vendor

HAS_ONEDNN: bool = all(
    hasattr(torch.ops.mkldnn, name) for name in ("_linear_pointwise", "_convolution_pointwise")
)
"""Whether this build of PyTorch has oneDNN's products and convolutions as operators of their own."""


@cache
def _formats() -> frozenset[torch.dtype]:
    """Return what oneDNN computes in on this processor."""
    if not HAS_ONEDNN:
        return frozenset()
    has_bf16 = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return frozenset({torch.float32, torch.bfloat16} if has_bf16 else {torch.float32})


def quick(x: Tensor) -> bool:
    """Return whether `x` is for layers' own ways here: oneDNN has its format, and it is not compiled."""
    return not torch.compiler.is_compiling() and x.device.type == "cpu" and x.dtype in _formats()


@cache
def has_quick_fp32_products() -> bool:
    """Return whether PyTorch's own products in fp32 beat oneDNN's: MKL's do on processors of its maker."""
    has_mkl = bool(torch.backends.mkl.is_available())  # type: ignore[no-untyped-call]
    return has_mkl and cpu_vendor() == "GenuineIntel"


def rectified(x: Tensor) -> Tensor:
    """Return x where that is positive, else 0: a ReLU, with PyTorch's gradient where that is finite."""
    if not torch.compiler.is_compiling() or x.device.type != "cpu":
        return F.relu(x)
    y: Tensor = _SignedRelu.apply(x)  # type: ignore[no-untyped-call]
    return y


class _SignedRelu(torch.autograd.Function):
    """A ReLU whose gradient is taken by the sign of what it returned.

    PyTorch's own is taken by truth values, which compiled kernels for a CPU write one after the other.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = F.relu(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return gradients[0] * torch.sign(y)


class Rounded:
    """A weight times a scale, rounded to a format: made again only when the weight has changed.

    A weight is used several times between two changes: by the target's network thousands of times, by the
    one that learns to act and to be corrected. Whether it changed is PyTorch's own count of changes in place,
    which optimizers and copies raise. Changes through `.data` it does not count: change a weight under
    `torch.no_grad()`. A graph recorded on a GPU does not raise it, so a weight there is refused. The weight
    that was rounded is held until the next one is, so that no other can take its place unnoticed.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self._weight: Tensor | None = None
        self._known: tuple[int, int, torch.dtype] | None = None
        self._copy: Tensor | None = None

    def of(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Return `weight × scale` in `dtype`, without a gradient."""
        assert weight.device.type == "cpu"
        if dtype == weight.dtype and self.scale == 1.0:
            return weight.detach()
        known = (weight.data_ptr(), weight._version, dtype)
        same = weight is self._weight and known == self._known
        if self._copy is None or not same:
            with torch.inference_mode(False), torch.no_grad():  # what acting makes, learning uses
                self._copy = self.scaled(weight).to(dtype)
            self._weight, self._known = weight, known
        return self._copy

    def gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """Return the weight's gradient, given its copy's."""
        return self.scaled(gradient.to(weight.dtype))

    def scaled(self, weight: Tensor) -> Tensor:
        """Return `weight × scale`; the weight itself where that is the same."""
        return weight if self.scale == 1.0 else weight * self.scale

    def __deepcopy__(self, memo: dict[int, Any]) -> Rounded:
        """Return one that knows nothing: a copied weight begins a count of its own."""
        return Rounded(self.scale)
