"""A network's pass as one call of the project's own kernels, forward or backward (docs/decisions/0036, 0037).

B batch, S stacked frames, H×W one frame, A actions, Z numbers per action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from atari_dqn.agent.heads import DuelingHead, Head, LinearHead, SharedDuelingHead
from atari_dqn.agent.linear import QuickLinear
from atari_dqn.agent.low_precision import Rounded
from atari_dqn.agent.noisy import NoisyLinear
from atari_dqn.agent.structure import keeps, watched
from atari_dqn.agent.torsos import ConvolutionalTorso, Torso
from atari_dqn.fast.cpu.factored import FactoredGradient, may_be_factored
from atari_dqn.fast.cpu.library import is_layer_by_layer
from atari_dqn.fast.cpu.passes import Kept, Layer, Layers, Room, backward, forward
from atari_dqn.fast.cpu.products import MULTIPLE, fits_product
from atari_dqn.minibatch import Pixels

_FP32_BYTES = 4
_HEADS = (LinearHead, DuelingHead, SharedDuelingHead)
Noise = Float[Tensor, "1 N"]
"""That of all layers' inputs and outputs, one after the other."""


@dataclass(frozen=True, eq=False)
class _Dense:
    """A fully connected layer, and where its noise lies in that of all layers."""

    weight: Tensor
    bias: Tensor
    rounded: Rounded | None
    """The weight in the torso's format; None of a head, which is fp32."""
    deviations: tuple[Tensor, Tensor] | None
    """Of weights and biases, if the layer is noisy."""
    noise_at: int

    @property
    def parameters(self) -> list[Tensor]:
        """The weight, the bias and, if the layer is noisy, the deviations of both."""
        return [self.weight, self.bias, *(self.deviations or ())]

    def told(self, dtype: torch.dtype, noise: Noise | None, first: int = 0) -> Layer:
        """Return what the kernels are told of the layer: of its outputs from `first` on, without noise."""
        outputs, inputs = self.weight.shape
        bias = self.bias.data_ptr() + first * _FP32_BYTES
        if noise is None or self.deviations is None:
            weight = self.weight if self.rounded is None else self.rounded.of(self.weight, dtype)
            start = weight.data_ptr() + first * inputs * weight.element_size()
            return start, bias, 0, 0, 0, 0, inputs, outputs - first
        assert not first
        noise_in = noise.data_ptr() + self.noise_at * _FP32_BYTES
        of_weight, of_bias = (deviation.data_ptr() for deviation in self.deviations)
        noise_out = noise_in + inputs * _FP32_BYTES
        return self.weight.data_ptr(), bias, of_weight, of_bias, noise_in, noise_out, inputs, outputs

    def room(self, noise: Noise | None) -> Room:
        """Return room for the gradients of the parameters; of deviations there is none without noise."""
        due = self.parameters if noise is not None else self.parameters[:2]
        return [torch.empty_like(parameter) for parameter in due] + [None] * (4 - len(due))

    def factored(self, x: Tensor, of_outputs: Tensor, noise: Noise | None) -> FactoredGradient:
        """Return the gradient of the weight, and under noise of its deviations, as what makes it."""
        if noise is None or self.deviations is None:
            return FactoredGradient((self.weight,), x, of_outputs)
        outputs, inputs = self.weight.shape
        noise_in = noise[0, self.noise_at : self.noise_at + inputs]
        noise_out = noise[0, self.noise_at + inputs : self.noise_at + inputs + outputs]
        return FactoredGradient((self.weight, self.deviations[0]), x, of_outputs, (noise_in, noise_out))


class OneCall:
    """What a torso and its head put out: all layers in one call, and all of their gradients in another.

    Between layers, Python and torch take as long as the kernels do of one image.
    """

    def __init__(
        self,
        torso: ConvolutionalTorso,
        head: LinearHead | DuelingHead,
        dense: Sequence[nn.Linear],
        dtype: torch.dtype,
    ) -> None:
        self._torso, self._size, self._dtype = torso, head.size, dtype
        noise_at, layers = 0, []
        for layer in dense:
            layers.append(_dense(layer, noise_at))
            noise_at += layer.in_features + layer.out_features
        self._hidden, *state, self._actions = layers
        self._dense = [self._hidden, self._actions, *state]
        self._of_dense = [parameter for layer in self._dense for parameter in layer.parameters]
        self._num_actions = len(self._actions.bias) // head.size
        of_chain = set(torso.convolutions)  # the chain looks at these itself
        self._modules = [part for part in (*torso.modules(), *head.modules()) if part not in of_chain]

    @staticmethod
    def of(torso: Torso, head: Head, dtype: torch.dtype) -> OneCall | None:
        """Return a network's; None where the kernels have no whole pass of such a torso or head.

        A class made from these may compute otherwise.
        """
        is_torso = keeps(torso, ConvolutionalTorso, "takes_bytes", "see", "think", "forward")
        if not is_torso or type(head) not in _HEADS:
            return None
        assert isinstance(torso, ConvolutionalTorso)
        assert isinstance(head, LinearHead | DuelingHead)
        dense = _layers(torso, head)
        fits = dense is not None and fits_product(dense[0].weight.shape, dtype)
        return OneCall(torso, head, dense, dtype) if dense is not None and fits else None

    def takes(self, frames: Pixels) -> bool:
        """Return whether the kernels make the pass of these frames, here and now: no layer is watched."""
        if torch.compiler.is_compiling() or is_layer_by_layer() or watched(self._modules):
            return False
        fits = frames.ndim == 4 and self._torso.takes_bytes(frames, self._dtype)
        return fits and all(map(_lies_as_told, self._of_dense))

    def outputs(
        self, frames: Pixels, draws: Noise | None, factored: list[FactoredGradient] | None = None
    ) -> Float[Tensor, "B A Z"]:
        """Return the head's numbers under the noise that is made of `draws` from N(0, 1), or under none.

        The draws are for all layers, one after the other, and overwritten. The backward pass may leave the
        gradient of the hidden layer's weights in `factored`, and none to autograd.
        """
        if torch.is_grad_enabled():
            leaves = self.parameters()
            outputs: Tensor = _Outputs.apply(self, frames, draws, factored, *leaves)  # type: ignore[no-untyped-call]
            return outputs
        return self.forward(self.layers(frames, draws), draws, None)

    def parameters(self) -> list[Tensor]:
        """Return what gets a gradient; the chain's as they are now, for it looks at its layers by itself."""
        return [*self._torso.chain.parameters(), *self._of_dense]

    def advantages(self, frames: Pixels) -> Float[Tensor, "B A Z"]:
        """Return what a dueling head with two streams makes of its actions' units alone.

        Without noise and without gradients.
        """
        units = self._actions.weight.shape[1]
        hidden = self._hidden.told(self._dtype, None, first=len(self._hidden.bias) - units)
        layers = self._told(frames, [hidden, self._actions.told(torch.float32, None)])
        return self.forward(layers, None, None)

    def layers(self, frames: Pixels, noise: Noise | None) -> Layers:
        """Return what the kernels are told of a pass."""
        hidden, *head = self._dense
        of_head = [layer.told(torch.float32, noise) for layer in head]
        return self._told(frames, [hidden.told(self._dtype, noise), *of_head])

    def forward(self, layers: Layers, draws: Noise | None, kept: Kept | None) -> Float[Tensor, "B A Z"]:
        """Return what a pass puts out."""
        outputs = torch.empty(layers.batch, self._num_actions, self._size)
        forward(layers, draws=draws, outputs=outputs, kept=kept)
        return outputs

    def gradients(
        self,
        layers: Layers,
        kept: Kept,
        upstream: Float[Tensor, "B A Z"],
        noise: Noise | None,
        factored: list[FactoredGradient] | None,
    ) -> list[Tensor | None]:
        """Return the parameters', the chain's first; the hidden weights' may be left in `factored`."""
        chain, hidden = self._torso.chain, self._hidden
        of_chain, rooms = chain.room(), [layer.room(noise) for layer in self._dense]
        of_units = torch.empty(layers.batch, layers.num_units, dtype=self._dtype)
        if factored is not None:
            product = hidden.factored(kept.seen(layers.batch), of_units, noise)
            if may_be_factored(product) and not any(map(_is_asked_for, product.weights)):
                rooms[0][0::2] = None, None
                factored.append(product)
        backward(layers, kept, upstream.contiguous(), of_chain=of_chain, of_dense=rooms, of_units=of_units)
        rows = zip(self._dense, rooms, strict=True)
        of_dense = [tensor for layer, room in rows for tensor in room[: len(layer.parameters)]]
        return [*chain.gradients(of_chain[0]), *of_chain[1], *of_dense]

    def _told(self, frames: Pixels, dense: Sequence[Layer]) -> Layers:
        chain, biases = self._torso.chain.arguments(frames, self._dtype)
        return Layers(chain=chain, biases=biases, dense=dense)


class _Outputs(torch.autograd.Function):
    """What a network puts out, and the gradients of its parameters; bytes have none."""

    @staticmethod
    def forward(
        ctx: Any,
        call: OneCall,
        frames: Pixels,
        draws: Noise | None,
        factored: list[FactoredGradient] | None,
        *parameters: Tensor,
    ) -> Tensor:
        layers = call.layers(frames, draws)
        kept = Kept(layers)
        outputs = call.forward(layers, draws, kept)
        ctx.call, ctx.layers, ctx.kept, ctx.noise, ctx.factored = call, layers, kept, draws, factored
        ctx.save_for_backward(frames, *parameters)  # who changes one of them is told by autograd
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        _unchanged = ctx.saved_tensors  # or autograd tells that one was changed
        found = ctx.call.gradients(ctx.layers, ctx.kept, gradients[0], ctx.noise, ctx.factored)
        return None, None, None, None, *found


def _lies_as_told(parameter: Tensor) -> bool:
    """Return whether a fully connected layer's numbers are what the kernels read: fp32, in a row."""
    return parameter.dtype is torch.float32 and parameter.is_cpu and parameter.is_contiguous()


def _is_asked_for(weight: Tensor) -> bool:
    """Return whether somebody is to be shown a weight's gradient, or is to be spared it."""
    hooks = (weight._backward_hooks, getattr(weight, "_post_accumulate_grad_hooks", None))
    return any(hooks) or not weight.requires_grad


def _layers(torso: ConvolutionalTorso, head: LinearHead | DuelingHead) -> list[nn.Linear] | None:
    """Return the hidden layer, what rates the state, if anything does, and what rates the actions.

    None if one of them is not of the classes that are known here, or not of the size that the others ask for.
    """
    hidden = torso.hidden
    of_head = [head.value, head.advantage] if isinstance(head, DuelingHead) else [head.output]
    known = (NoisyLinear,) if type(hidden) is NoisyLinear else (QuickLinear, nn.Linear)
    if not isinstance(hidden, QuickLinear) or any(type(layer) not in known for layer in (hidden, *of_head)):
        return None
    layers = [hidden, *(layer for layer in of_head if isinstance(layer, nn.Linear))]
    inputs = [torso.num_seen, *[len(hidden.weight) // head.streams] * len(of_head)]
    fit = all(_is_whole(layer, count) for layer, count in zip(layers, inputs, strict=True))
    fits_numbers = len(layers[-1].weight) % head.size == 0 and all(
        len(layer.weight) == head.size for layer in layers[1:-1]
    )
    return layers if fit and fits_numbers and inputs[-1] % MULTIPLE == 0 else None


def _is_whole(layer: nn.Linear, inputs: int) -> bool:
    """Return whether a layer has so many inputs, and a bias, and with deviations all of them."""
    means = (layer.weight, layer.bias)
    if layer.bias is None or layer.weight.shape != (len(layer.bias), inputs):
        return False
    deviations = (layer.weight_sigma, layer.bias_sigma) if isinstance(layer, NoisyLinear) else means
    return all(one.shape == other.shape for one, other in zip(means, deviations, strict=True))


def _dense(layer: nn.Linear, noise_at: int) -> _Dense:
    rounded = layer.rounded if isinstance(layer, QuickLinear) else None
    deviations = (layer.weight_sigma, layer.bias_sigma) if isinstance(layer, NoisyLinear) else None
    return _Dense(layer.weight, layer.bias, rounded, deviations, noise_at)
