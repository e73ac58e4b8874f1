"""A chain of convolutions of bytes by the project's own kernels, image by image (docs/decisions/0034)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from atari_dqn.agent.convolution import Convolution
from atari_dqn.agent.structure import Anatomy, watched
from atari_dqn.fast.cpu.arguments import ChainArguments, row
from atari_dqn.fast.cpu.products import fits_convolution, takes_bytes
from atari_dqn.minibatch import Frames


class Chain:
    """Convolutions that follow one another, each with its ReLU, and what is known of them."""

    def __init__(self, convolutions: nn.ModuleList) -> None:
        self._convolutions = convolutions
        self._look()

    def takes(self, frames: Tensor, dtype: torch.dtype) -> bool:
        """Return whether the kernels compute these layers of these frames here; not if one is watched."""
        if torch.compiler.is_compiling():
            return False
        if not self._anatomy.holds():
            self._look()
        return self._fits and not watched(self._layers) and takes_bytes(frames, self._channels, dtype)

    def see(self, frames: Frames, dtype: torch.dtype) -> Float[Tensor, "B F"]:
        """Return what the last layer puts out, channel by channel, of frames that the kernels take."""
        if torch.is_grad_enabled():
            seen: Tensor = _Seen.apply(self, frames, dtype, *self.parameters())  # type: ignore[no-untyped-call]
            return seen
        weights, biases = [layer.weight for layer in self._layers], [layer.bias_ for layer in self._layers]
        return self.outputs(frames, self.rounded(weights, dtype), biases, keeps=False)[0]

    def arguments(self, frames: Frames, dtype: torch.dtype) -> tuple[ChainArguments, list[Tensor]]:
        """Return what the kernels are told of the layers and of frames that they take, and the biases."""
        weights = self.rounded([layer.weight for layer in self._layers], dtype)
        biases = [row(layer.bias_) for layer in self._layers]
        return ChainArguments(frames, weights, self.strides, self.zeros), biases

    def rounded(self, weights: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """Return weights as the kernels read them."""
        return [layer.rounded.of(weight, dtype) for layer, weight in zip(self._layers, weights, strict=True)]

    def parameters(self) -> list[Tensor]:
        """Return the weights, then the biases."""
        return [*(layer.weight for layer in self._layers), *(layer.bias_ for layer in self._layers)]

    def room(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return room for the gradients of weights, which the kernels write channels-last, and biases."""
        return (
            [torch.empty_like(layer.weight, memory_format=torch.channels_last) for layer in self._layers],
            [torch.empty_like(layer.bias_) for layer in self._layers],
        )

    def gradients(self, of_rounded: Sequence[Tensor]) -> list[Tensor]:
        """Return the weights' gradients, given those of what `rounded` made of them."""
        rows = zip(self._layers, of_rounded, strict=True)
        return [layer.rounded.gradient(gradient, layer.weight) for layer, gradient in rows]

    def outputs(
        self, frames: Tensor, rounded: Sequence[Tensor], biases: Sequence[Tensor], *, keeps: bool
    ) -> list[Tensor]:
        """Return what is seen and, if it `keeps` them, what each layer but the last puts out."""
        outputs: list[Tensor] = torch.ops.atari_dqn.see(
            frames, rounded, biases, self.strides, self.zeros, keeps
        )
        return outputs

    def _look(self) -> None:
        """Find out what the layers are; again whenever there are others."""
        self._anatomy = Anatomy(self._convolutions)
        self._layers = tuple(layer for layer in self._convolutions if type(layer) is Convolution)
        self.strides = [layer.stride[0] for layer in self._layers]
        self.zeros = [number for layer in self._layers for number in layer.zeros]
        are_ours = len(self._layers) == len(self._convolutions)
        fit = (layer.relu and fits_convolution(layer.weight.shape) for layer in self._layers)
        self._fits = are_ours and all(fit)
        self._channels = self._layers[0].in_channels if are_ours else 0


class _Seen(torch.autograd.Function):
    """What a chain sees, and the gradients of its weights and biases; bytes have none."""

    @staticmethod
    def forward(ctx: Any, chain: Chain, frames: Tensor, dtype: torch.dtype, *parameters: Tensor) -> Tensor:
        count = len(parameters) // 2
        weights, biases = parameters[:count], parameters[count:]
        rounded = chain.rounded(weights, dtype)
        outputs = chain.outputs(frames, rounded, biases, keeps=True)
        ctx.chain = chain
        ctx.save_for_backward(frames, *outputs, *rounded, *weights)
        return outputs[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        chain, (frames, *saved) = ctx.chain, ctx.saved_tensors  # weights among them: who changes one is told
        count = len(saved) // 3
        outputs, rounded = saved[:count], saved[count : 2 * count]
        found = torch.ops.atari_dqn.see_backward(
            gradients[0], frames, rounded, outputs, chain.strides, chain.zeros
        )
        return None, None, None, *chain.gradients(found[:count]), *found[count:]
