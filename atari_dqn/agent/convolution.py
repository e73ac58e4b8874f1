"""Convolutions with the ReLU behind them: in one pass on a CPU, or as products with patches.

On a CPU the project's own kernels compute what fits them (docs/decisions/0034), oneDNN the rest.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from atari_dqn.agent.linear import linear
from atari_dqn.agent.low_precision import Rounded, quick, rectified
from atari_dqn.fast.cpu.products import takes_convolution

Pair = tuple[int, int]


class Convolution(nn.Conv2d):
    """A convolution in the format of its input, with a ReLU behind it if `relu`.

    Where kernels do not overlap, it may be shown the patches that they see instead (docs/decisions/0032): the
    values of each, row by row, pixel by pixel, one patch after the other, however many are in a row of `x`.

    The layer of `pixels` takes them as they are, 0 to 255, and scales its weights instead: the convolution of
    pixels in [0, 1] without a pass over the frames; and 0 to 255 are exact in bf16, 0 to 1 are not.

    `padding` zeros are put above and below, left and right, and `more` of them below and right.
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
        more: Pair = (0, 0),
        pixels: bool = False,
        relu: bool = False,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel, stride, padding)
        self.scale = 1.0 / 255.0 if pixels else 1.0
        self.relu = relu
        self.rounded = Rounded(self.scale)
        self._more = more

    @property
    def zeros(self) -> tuple[int, int, int, int]:
        """How many zeros are put above, below, left and right of an image."""
        (above, left), (below, right) = self.padding, self._more
        return above, above + below, left, left + right

    def forward(
        self, x: Float[Tensor, "B S H W"] | Float[Tensor, "B N M"]
    ) -> Float[Tensor, "B C H2 W2"] | Float[Tensor, "B P C"]:
        """Return the convolution of `x`, or of `x / 255`: of frames as frames, of P patches as patches."""
        if x.ndim == 3:
            return self._of_patches(x)
        if any(self._more):
            below, right = self._more
            x = F.pad(x, (0, right, 0, below))
        if quick(x):
            return self._quick(x)
        weight = self.rounded.scaled(self.weight)
        y = F.conv2d(x, weight.to(x.dtype), self.bias_.to(x.dtype), self.stride, self.padding)
        return rectified(y) if self.relu else y

    def _of_patches(self, x: Tensor) -> Tensor:
        assert (self.kernel_size, self.zeros) == (self.stride, (0, 0, 0, 0)), "kernels overlap"
        patches = x.reshape(-1, self.weight[0].numel())
        y = linear(patches, self.weight, self.bias_, self.rounded, relu=self.relu)
        return y.view(len(x), -1, self.out_channels)

    def _quick(self, x: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            weight = self.rounded.of(self.weight, x.dtype)
            return _convolve(x, weight, self.bias_, self.stride, self.padding, self.relu)
        y: Tensor = _Convolved.apply(  # type: ignore[no-untyped-call]
            x, self.weight, self.bias_, self.rounded, self.stride, self.padding, self.relu
        )
        return y

    @property
    def bias_(self) -> Tensor:
        """The bias, which there is always."""
        assert self.bias is not None
        return self.bias


class _Convolved(torch.autograd.Function):
    """A convolution, a ReLU behind it or none, and its three gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        rounded: Rounded,
        stride: Pair,
        padding: Pair,
        relu: bool,
    ) -> Tensor:
        copy = rounded.of(weight, x.dtype)
        y = _convolve(x, copy, bias, stride, padding, relu)
        ctx.save_for_backward(x, copy, weight, y)
        ctx.rounded, ctx.stride, ctx.padding, ctx.relu = rounded, stride, padding, relu
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, copy, weight, y = ctx.saved_tensors
        needs_x = ctx.needs_input_grad[0]
        of_x, of_copy, of_bias = _gradients(
            gradients[0], x, copy, y, ctx.stride, ctx.padding, ctx.relu, needs_x
        )
        return (
            of_x if needs_x else None,
            ctx.rounded.gradient(of_copy, weight),
            of_bias.to(weight.dtype),
            *(None,) * 4,
        )


def _convolve(x: Tensor, weight: Tensor, bias: Tensor, stride: Pair, padding: Pair, relu: bool) -> Tensor:
    if takes_convolution(x, weight):
        y: Tensor = torch.ops.atari_dqn.convolve(x, weight, bias, stride, padding, relu)
        return y
    row = bias.to(x.dtype).contiguous()  # oneDNN reads no other
    y = torch.ops.mkldnn._convolution_pointwise(x, weight, row, padding, stride, [1, 1], 1, "none", [], "")
    return y.relu_() if relu else y  # oneDNN's fused ReLU turns NaN into 0, and the gates look for NaN


def _gradients(
    upstream: Tensor,
    x: Tensor,
    weight: Tensor,
    y: Tensor,
    stride: Pair,
    padding: Pair,
    relu: bool,
    of_x: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, nothing of use unless `of_x`, of the weight and of the bias."""
    gradients: tuple[Tensor, Tensor, Tensor]
    if takes_convolution(x, weight):
        gradients = torch.ops.atari_dqn.convolve_backward(upstream, x, weight, y, stride, padding, relu, of_x)
    else:
        upstream = upstream.contiguous(memory_format=torch.channels_last)
        if relu:
            upstream = torch.ops.aten.threshold_backward(upstream, y, 0)
        gradients = torch.ops.aten.convolution_backward(
            upstream, x, weight, [len(weight)], stride, padding, [1, 1], False, [0, 0], 1, [of_x, True, True]
        )
    return gradients
