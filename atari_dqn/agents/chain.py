"""A chain of convolutions of bytes by the project's own kernels, image by image (docs/decisions/0034)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from atari_dqn.agents.convolution import Convolution
from atari_dqn.kernels.products import takes_chain
from atari_dqn.minibatch import Frames


def is_for_kernels(layers: Sequence[Convolution], frames: Tensor, dtype: torch.dtype) -> bool:
    """Return whether the kernels compute these layers, each with its ReLU, of these frames here."""
    return not torch.compiler.is_compiling() and takes_chain(
        frames, [layer.weight for layer in layers], dtype
    )


def seen_by(layers: Sequence[Convolution], frames: Frames, dtype: torch.dtype) -> Float[Tensor, "B F"]:
    """Return what the last layer puts out, channel by channel."""
    weights, biases = [layer.weight for layer in layers], [layer.bias_ for layer in layers]
    if not torch.is_grad_enabled():
        seen: Tensor = _outputs(layers, frames, weights, biases, dtype, keeps=False)[0]
    else:
        seen = _Seen.apply(layers, frames, dtype, *weights, *biases)  # type: ignore[no-untyped-call]
    return seen


class _Seen(torch.autograd.Function):
    """What a chain sees, and the gradients of its weights and biases; bytes have none."""

    @staticmethod
    def forward(
        ctx: Any, layers: Sequence[Convolution], frames: Tensor, dtype: torch.dtype, *parameters: Tensor
    ) -> Tensor:
        weights, biases = parameters[: len(layers)], parameters[len(layers) :]
        outputs = _outputs(layers, frames, weights, biases, dtype, keeps=True)
        ctx.layers = layers
        ctx.save_for_backward(frames, *outputs, *_rounded(layers, weights, dtype), *weights)
        return outputs[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        layers, saved, count = ctx.layers, ctx.saved_tensors, len(ctx.layers)
        frames, outputs = saved[0], saved[1 : 1 + count]
        rounded, weights = saved[1 + count : 1 + 2 * count], saved[1 + 2 * count :]
        strides, zeros = _windows(layers)
        found = torch.ops.atari_dqn.see_backward(gradients[0], frames, rounded, outputs, strides, zeros)
        of_weights = [
            layer.rounded.gradient(gradient, weight)
            for layer, gradient, weight in zip(layers, found, weights, strict=False)
        ]
        return None, None, None, *of_weights, *found[count:]


def _outputs(
    layers: Sequence[Convolution],
    frames: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    dtype: torch.dtype,
    *,
    keeps: bool,
) -> list[Tensor]:
    strides, zeros = _windows(layers)
    outputs: list[Tensor] = torch.ops.atari_dqn.see(
        frames, _rounded(layers, weights, dtype), biases, strides, zeros, keeps
    )
    return outputs


def _rounded(layers: Sequence[Convolution], weights: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    return [layer.rounded.of(weight, dtype) for layer, weight in zip(layers, weights, strict=True)]


def _windows(layers: Sequence[Convolution]) -> tuple[list[int], list[int]]:
    return [layer.stride[0] for layer in layers], [number for layer in layers for number in layer.zeros]
