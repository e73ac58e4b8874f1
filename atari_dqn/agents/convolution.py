"""Convolutions with the ReLU behind them: in one pass on a CPU, or as products with patches."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from atari_dqn.agents.arithmetic import Rounded, quick, rectified
from atari_dqn.agents.linear import linear

Pair = tuple[int, int]


class Convolution(nn.Conv2d):
    """A convolution in the format of its input, with a ReLU behind it if `relu`.

    Where kernels do not overlap, it may be shown the patches that they see instead (docs/decisions/0032): the
    values of each, row by row, pixel by pixel, one patch after the other, however many are in a row of `x`.

    The layer of `pixels` takes them as they are, 0 to 255, and scales its weights instead: the convolution of
    pixels in [0, 1] without a pass over the frames; and 0 to 255 are exact in bf16, 0 to 1 are not.
    """

    stride: Pair
    padding: Pair

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: int,
        stride: int = 1,
        *,
        padding: int | Pair = 0,
        pixels: bool = False,
        relu: bool = False,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel, stride, padding)
        self.scale = 1.0 / 255.0 if pixels else 1.0
        self.relu = relu
        self._rounded = Rounded(self.scale)

    def forward(
        self, x: Float[Tensor, "B S H W"] | Float[Tensor, "B N M"]
    ) -> Float[Tensor, "B C H2 W2"] | Float[Tensor, "B P C"]:
        """Return the convolution of `x`, or of `x / 255`: of frames as frames, of P patches as patches."""
        if x.ndim == 3:
            return self._of_patches(x)
        if quick(x):
            return self._quick(x)
        weight = self._rounded.scaled(self.weight)
        y = F.conv2d(x, weight.to(x.dtype), self._bias.to(x.dtype), self.stride, self.padding)
        return rectified(y) if self.relu else y

    def _of_patches(self, x: Tensor) -> Tensor:
        assert (self.kernel_size, self.padding) == (self.stride, (0, 0)), "kernels overlap"
        patches = x.reshape(-1, self.weight[0].numel())
        y = linear(patches, self.weight, self._bias, self._rounded).view(len(x), -1, self.out_channels)
        return rectified(y) if self.relu else y

    def _quick(self, x: Tensor) -> Tensor:
        after = "relu" if self.relu else "none"
        if not torch.is_grad_enabled():
            weight = self._rounded.of(self.weight, x.dtype)
            return _convolve(x, weight, self._bias.to(x.dtype), self.stride, self.padding, after)
        y: Tensor = _Convolved.apply(  # type: ignore[no-untyped-call]
            x, self.weight, self._bias, self._rounded, self.stride, self.padding, after
        )
        return y

    @property
    def _bias(self) -> Tensor:
        assert self.bias is not None
        return self.bias


class _Convolved(torch.autograd.Function):
    """A convolution, what follows it, and its three gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        rounded: Rounded,
        stride: Pair,
        padding: Pair,
        after: str,
    ) -> Tensor:
        copy = rounded.of(weight, x.dtype)
        y = _convolve(x, copy, bias.to(x.dtype), stride, padding, after)
        ctx.save_for_backward(x, copy, weight, y)
        ctx.rounded, ctx.stride, ctx.padding, ctx.after = rounded, stride, padding, after
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, copy, weight, y = ctx.saved_tensors
        gradient = gradients[0].contiguous(memory_format=torch.channels_last)
        if ctx.after == "relu":
            gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
        of_x, of_copy, of_bias = torch.ops.aten.convolution_backward(
            gradient, x, copy, [len(weight)], ctx.stride, ctx.padding, [1, 1], False, [0, 0], 1,
            [ctx.needs_input_grad[0], True, True],
        )  # fmt: skip
        return (
            of_x if ctx.needs_input_grad[0] else None,
            ctx.rounded.gradient(of_copy, weight),
            of_bias.to(weight.dtype),
            *(None,) * 4,
        )


def _convolve(x: Tensor, weight: Tensor, bias: Tensor, stride: Pair, padding: Pair, after: str) -> Tensor:
    y: Tensor = torch.ops.mkldnn._convolution_pointwise(
        x, weight, bias, padding, stride, [1, 1], 1, after, [], ""
    )
    return y
