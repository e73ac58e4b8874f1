"""A network's forward pass without gradients as one call of the project's own kernels (docs/decisions/0036).

B batch, S stacked frames, H×W one frame, A actions, Z numbers per action.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from atari_dqn.agents.arithmetic import Rounded
from atari_dqn.agents.chain import watched
from atari_dqn.agents.heads import DuelingHead, Head, LinearHead
from atari_dqn.agents.linear import QuickLinear
from atari_dqn.agents.noisy import NoisyLinear
from atari_dqn.agents.torsos import ConvolutionalTorso, Torso
from atari_dqn.kernels.forward import Layer, forward
from atari_dqn.kernels.library import is_layer_by_layer
from atari_dqn.kernels.products import MULTIPLE, fits_product
from atari_dqn.minibatch import Pixels

_FP32_BYTES = 4


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

    def told(self, dtype: torch.dtype, noise: Tensor | None, first: int = 0) -> Layer:
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


class Forward:
    """What a torso and its head put out, without gradients: all layers in one call.

    Between layers, Python and torch take as long as the kernels do of one image.
    """

    def __init__(self, torso: ConvolutionalTorso, head: LinearHead | DuelingHead, dtype: torch.dtype) -> None:
        self._torso, self._size, self._dtype = torso, head.size, dtype
        of_head = [head.value, head.advantage] if isinstance(head, DuelingHead) else [head.output]
        noise_at, layers = 0, []
        for layer in (torso.hidden, *of_head):
            assert isinstance(layer, nn.Linear)
            layers.append(_dense(layer, noise_at))
            noise_at += layer.in_features + layer.out_features
        self._hidden, *state, self._actions = layers
        self._state = state[0] if state else None
        self._num_actions = len(self._actions.bias) // head.size
        of_chain = set(torso.convolutions)  # the chain looks at these itself
        self._modules = [part for part in (*torso.modules(), *head.modules()) if part not in of_chain]

    @staticmethod
    def of(torso: Torso, head: Head, dtype: torch.dtype) -> Forward | None:
        """Return a network's; None where the kernels have no whole pass of such a torso or head."""
        if not isinstance(torso, ConvolutionalTorso) or not isinstance(head, LinearHead | DuelingHead):
            return None
        hidden = torso.hidden
        fits = isinstance(hidden, QuickLinear) and fits_product(hidden.weight.shape, dtype)
        fits_head = torso.num_features // head.streams % MULTIPLE == 0
        return Forward(torso, head, dtype) if fits and fits_head else None

    def takes(self, frames: Pixels) -> bool:
        """Return whether the kernels make the pass of these frames, here and now: no layer is watched."""
        goes_apart = torch.compiler.is_compiling() or torch.is_grad_enabled() or is_layer_by_layer()
        if goes_apart or watched(self._modules):
            return False
        return frames.ndim == 4 and self._torso.takes_bytes(frames, self._dtype)

    def outputs(self, frames: Pixels, draws: Float[Tensor, "1 N"] | None) -> Float[Tensor, "B A Z"]:
        """Return the head's numbers under the noise that is made of `draws` from N(0, 1), or under none.

        The draws are for all layers, one after the other, and overwritten.
        """
        state = None if self._state is None else self._state.told(torch.float32, draws)
        hidden = self._hidden.told(self._dtype, draws)
        return self._call(frames, hidden, self._actions.told(torch.float32, draws), state, draws)

    def advantages(self, frames: Pixels) -> Float[Tensor, "B A Z"]:
        """Return what a dueling head with two streams makes of its actions' units alone, without noise."""
        units = self._actions.weight.shape[1]
        hidden = self._hidden.told(self._dtype, None, first=len(self._hidden.bias) - units)
        return self._call(frames, hidden, self._actions.told(torch.float32, None), None, None)

    def _call(
        self, frames: Pixels, hidden: Layer, actions: Layer, state: Layer | None, draws: Tensor | None
    ) -> Tensor:
        outputs = torch.empty(frames.shape[0], self._num_actions, self._size)
        chain, biases = self._torso.chain.arguments(frames, self._dtype)
        forward(chain, biases, hidden=hidden, actions=actions, state=state, draws=draws, outputs=outputs)
        return outputs


def _dense(layer: nn.Linear, noise_at: int) -> _Dense:
    rounded = layer.rounded if isinstance(layer, QuickLinear) else None
    deviations = (layer.weight_sigma, layer.bias_sigma) if isinstance(layer, NoisyLinear) else None
    return _Dense(layer.weight, layer.bias, rounded, deviations, noise_at)
