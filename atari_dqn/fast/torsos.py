"""Torsos whose convolutions are one kernel call, or matrix products.

`structure.apply_plan` changes the class of a finished torso to one of these and calls `accelerate`, because
`__init__` does not run again.

B batch, H×W input of a convolution, H2×W2 its output, C channels, F encoded numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from atari_dqn.agent.torsos import ConvolutionalTorso, SamePadConv2d
from atari_dqn.fast.cpu.arguments import StackArguments, row
from atari_dqn.fast.low_precision import LowPrecisionWeight
from atari_dqn.fast.pixel_layout import patches
from atari_dqn.machine.sizes import MAX_UNFOLDED_BATCH
from atari_dqn.minibatch import Frames


def kernels_read(frames: Frames) -> bool:
    """Return whether the kernels can compute with frames: uint8, or fp32 of which no gradient is needed.

    PyTorch keeps no tensor of its inference mode for a backward pass.
    """
    is_kept = not (torch.is_grad_enabled() and frames.is_inference())
    return frames.dtype in (torch.uint8, torch.float32) and not frames.requires_grad and is_kept


class ConvolutionStack:
    """A stack of convolutions with ReLUs, computed image by image in one kernel call.

    Pixels are from 0 to 255, and the first weights are scaled instead: bytes are exact in bf16.
    """

    def __init__(self, layers: nn.ModuleList, dtype: torch.dtype) -> None:
        self._layers, self.dtype = layers, dtype
        self._caches = [LowPrecisionWeight(1 / 255 if place == 0 else 1.0) for place in range(len(layers))]
        self.strides = [int(layer.stride[0]) for layer in layers]  # type: ignore[index]
        self.zeros = [count for layer in layers for count in padding_of(layer)]

    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the last layer, channel by channel; see `kernels_read`."""
        assert not frames.requires_grad
        if torch.is_grad_enabled():
            encoded: Tensor = _EncodeFunction.apply(self, frames, *self.parameters())  # type: ignore[no-untyped-call]
            return encoded
        return self.outputs(frames, self.converted(self.weights()), self.biases(), all_layers=False)[0]

    def arguments(self, frames: Frames) -> tuple[StackArguments, list[Tensor]]:
        """Collect the arguments of the kernels, and the biases."""
        weights = self.converted(self.weights())
        return StackArguments(frames, weights, self.strides, self.zeros), [
            row(bias) for bias in self.biases()
        ]

    def weights(self) -> list[Tensor]:
        """List the weights."""
        return [layer.weight for layer in self._layers]  # type: ignore[misc]

    def biases(self) -> list[Tensor]:
        """List the biases."""
        return [layer.bias for layer in self._layers]  # type: ignore[misc]

    def parameters(self) -> list[Tensor]:
        """List the weights, then the biases."""
        return [*self.weights(), *self.biases()]

    def converted(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """Convert weights to the format and scale that the kernels read."""
        return [cache.of(weight, self.dtype) for cache, weight in zip(self._caches, weights, strict=True)]

    def empty_gradients(self) -> tuple[list[Tensor], list[Tensor]]:
        """Allocate fp32 gradients of the weights, in the channels-last memory format, and of the biases."""
        return (
            [
                torch.empty_like(weight, dtype=torch.float32, memory_format=torch.channels_last)
                for weight in self.weights()
            ],
            [torch.empty_like(bias, dtype=torch.float32) for bias in self.biases()],
        )

    def gradients(self, of_converted: Sequence[Tensor]) -> list[Tensor]:
        """Compute the gradients of the weights from those of the converted weights."""
        rows = zip(self._caches, of_converted, self.weights(), strict=True)
        return [cache.gradient(gradient, weight) for cache, gradient, weight in rows]

    def outputs(
        self, frames: Tensor, converted: Sequence[Tensor], biases: Sequence[Tensor], *, all_layers: bool
    ) -> list[Tensor]:
        """Compute the encoded frames, then, if `all_layers`, the outputs of the earlier layers."""
        outputs: list[Tensor] = torch.ops.atari_dqn.encode(
            frames, converted, biases, self.strides, self.zeros, all_layers
        )
        return outputs


def padding_of(layer: nn.Module) -> tuple[int, int, int, int]:
    """Compute a convolution's padding above, below, left and right."""
    if isinstance(layer, SamePadConv2d):
        return layer.zeros
    assert isinstance(layer, nn.Conv2d)
    above, left = int(layer.padding[0]), int(layer.padding[1])
    return above, above, left, left


class _EncodeFunction(torch.autograd.Function):
    """The output of a convolution stack and the gradients of its weights and biases."""

    @staticmethod
    def forward(ctx: Any, stack: ConvolutionStack, frames: Tensor, *parameters: Tensor) -> Tensor:
        count = len(parameters) // 2
        weights, biases = parameters[:count], parameters[count:]
        converted = stack.converted(weights)
        outputs = stack.outputs(frames, converted, biases, all_layers=True)
        ctx.stack = stack
        # one tensor of each kind per layer; the weights only so that autograd detects that one was changed
        ctx.save_for_backward(frames, *outputs, *converted, *weights)
        return outputs[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        stack, (frames, *saved) = ctx.stack, ctx.saved_tensors
        count = len(saved) // 3
        outputs, converted = saved[:count], saved[count : 2 * count]
        found = torch.ops.atari_dqn.encode_backward(
            gradients[0], frames, converted, outputs, stack.strides, stack.zeros
        )
        return None, None, *stack.gradients(found[:count]), *found[count:]


class StackedTorso(ConvolutionalTorso):
    """A convolutional torso in one kernel call; other frames than `kernels_read` are computed in layers."""

    stack: ConvolutionStack

    def accelerate(self, dtype: torch.dtype) -> None:
        """Set what the change of the class does not."""
        self.stack = ConvolutionStack(self.convolutions, dtype)

    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the convolutions, channel by channel."""
        return self.stack.encode(frames) if kernels_read(frames) else super().encode(frames)


class PatchTorso(ConvolutionalTorso):
    """A torso whose convolutions have stride = filter size, no padding: products with patches of pixels.

    Other frames than `kernels_read` are computed in layers.
    """

    dtype: torch.dtype

    def accelerate(self, dtype: torch.dtype) -> None:
        """Set what the change of the class does not."""
        self.dtype = dtype

    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the convolutions, channel by channel."""
        if not kernels_read(frames):
            return super().encode(frames)
        expected = self.convolutions[0].in_channels
        if frames.shape[1] != expected:
            raise ValueError(f"expected frames with {expected} channels, found size {tuple(frames.shape)}")
        sides = tuple(int(layer.kernel_size[0]) for layer in self.convolutions)  # type: ignore[index]
        x = patches(frames, sides).to(self.dtype)
        for index, layer in enumerate(self.convolutions):
            assert isinstance(layer, nn.Conv2d)
            weight = layer.weight.permute(0, 2, 3, 1).flatten(1)  # a view: weights are channels-last
            weight = weight / 255.0 if index == 0 else weight  # pixels from 0 to 255 are exact in bf16
            x = F.relu(F.linear(x.reshape(-1, weight.shape[1]), weight, layer.bias))
        return x.view(len(frames), -1, x.shape[1]).transpose(1, 2).flatten(1)


class UnfoldedTorso(ConvolutionalTorso):
    """A torso whose convolutions are products with their unfolded input (im2col), for a GPU.

    cuDNN's deterministic algorithms leave most of a large GPU idle in minibatches of 32; see
    docs/decisions/0087. Batches larger than `MAX_UNFOLDED_BATCH` are left to cuDNN.
    """

    dtype: torch.dtype

    def accelerate(self, dtype: torch.dtype) -> None:
        """Set what the change of the class does not."""
        self.dtype = dtype

    def encode(self, frames: Frames) -> Float[Tensor, "B F"]:
        """Compute the flattened output of the convolutions, channel by channel."""
        if len(frames) > MAX_UNFOLDED_BATCH:
            return super().encode(frames)
        # autocast converts weights; pixels from 0 to 255 are exact in bf16, so the first weights are scaled
        x = frames.permute(0, 2, 3, 1).to(self.dtype, memory_format=torch.contiguous_format)
        for index, layer in enumerate(self.convolutions):
            assert isinstance(layer, nn.Conv2d)
            weight = layer.weight.permute(0, 2, 3, 1).flatten(1)  # a view: weights are channels-last
            weight = weight / 255.0 if index == 0 else weight
            x = F.relu(F.linear(_unfolded(x, layer), weight, layer.bias))
        return x.permute(0, 3, 1, 2).flatten(1)


def _unfolded(x: Float[Tensor, "B H W C"], layer: nn.Conv2d) -> Float[Tensor, "B H2 W2 K"]:
    """Gather the receptive field of each output: K = filter height × filter width × C."""
    above, below, left, right = padding_of(layer)
    if above or below or left or right:
        x = F.pad(x, (0, 0, left, right, above, below))
    (height, width), (stride_y, stride_x) = layer.kernel_size, layer.stride
    windows = x.unfold(1, height, stride_y).unfold(2, width, stride_x)  # B H2 W2 C, height, width
    return windows.permute(0, 1, 2, 4, 5, 3).flatten(3)
