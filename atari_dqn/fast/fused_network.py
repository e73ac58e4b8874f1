"""A network's pass as one call of the project's own kernels, forward or backward (docs/decisions/0036, 0037).

B batch, S stacked frames, H×W one frame, A actions, Z numbers per action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from atari_dqn.agent.distributions import ValueDistribution
from atari_dqn.agent.heads import DuelingHead, LinearHead
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import NoisyLinear, num_draws
from atari_dqn.agent.random_draws import Rng, normal
from atari_dqn.fast.cpu.factored import FactoredGradient, may_be_factored
from atari_dqn.fast.cpu.passes import Kept, Layer, Layers, Room, backward, forward
from atari_dqn.fast.low_precision import LowPrecisionWeight
from atari_dqn.fast.torsos import StackedTorso
from atari_dqn.minibatch import Frames

_FP32_BYTES = 4
Noise = Float[Tensor, "1 N"]
"""That of all layers' inputs and outputs, one after the other."""


class FusedNetwork(QNetwork):
    """A `QNetwork` all of whose layers are one call, and all of whose gradients are another.

    Between layers, Python and torch take as long as the kernels do for one image. Modules inside are not
    called, so their hooks are not either. Frames that are no bytes, and parts of a batch with noise of their
    own, go layer by layer.
    """

    fused: FusedPass
    unwritten: list[FactoredGradient] | None = None
    """Where a learner has the backward pass leave the hidden layer's gradient; None while it learns not."""

    def accelerate(self) -> None:
        """Set what `QNetwork` lacks."""
        self.fused = FusedPass(self)

    def distribution(
        self, frames: Frames, rng: Rng | None = None, *, num_quantiles: int | None = None, noise_rows: int = 1
    ) -> ValueDistribution:
        """Compute the value distribution of every action."""
        noisy = self.fused.noisy if rng is not None else []
        if frames.dtype is not torch.uint8 or (noisy and noise_rows > 1):
            return super().distribution(frames, rng, num_quantiles=num_quantiles, noise_rows=noise_rows)
        draws = normal(rng, 1, num_draws(noisy)) if rng is not None and noisy else None
        whole: ValueDistribution = self.value(self.fused.outputs(frames, draws, self.unwritten))
        return whole


class _Dense:
    """A fully connected layer, and where its noise lies in that of all layers."""

    def __init__(self, layer: nn.Linear, noise_at: int, cache: LowPrecisionWeight | None) -> None:
        self.layer, self.noise_at, self._cache = layer, noise_at, cache
        self._is_noisy = isinstance(layer, NoisyLinear)

    @property
    def sigmas(self) -> tuple[Tensor, ...]:
        """The deviations of weight and bias, if the layer is noisy."""
        layer = self.layer
        return (layer.weight_sigma, layer.bias_sigma) if isinstance(layer, NoisyLinear) else ()

    @property
    def parameters(self) -> list[Tensor]:
        """The weight, the bias and, if the layer is noisy, the deviations of both."""
        return [self.layer.weight, self.layer.bias, *self.sigmas]

    def described(self, dtype: torch.dtype, noise: Noise | None) -> Layer:
        """Describe the layer to the kernels."""
        weight, bias = self.layer.weight, self.layer.bias.data_ptr()
        outputs, inputs = weight.shape
        if noise is None or not self._is_noisy:
            read = weight if self._cache is None else self._cache.of(weight, dtype)
            return read.data_ptr(), bias, 0, 0, 0, 0, inputs, outputs
        noise_in = noise.data_ptr() + self.noise_at * _FP32_BYTES
        of_weight, of_bias = (sigma.data_ptr() for sigma in self.sigmas)
        noise_out = noise_in + inputs * _FP32_BYTES
        return weight.data_ptr(), bias, of_weight, of_bias, noise_in, noise_out, inputs, outputs

    def empty_gradients(self, noise: Noise | None) -> Room:
        """Make room for the gradients of the parameters; deviations have none without noise."""
        due = self.parameters if noise is not None else self.parameters[:2]
        return [torch.empty_like(parameter) for parameter in due] + [None] * (4 - len(due))

    def factored(self, x: Tensor, of_outputs: Tensor, noise: Noise | None) -> FactoredGradient:
        """Give the gradient of the weight, and under noise of its deviations, as the factors that make it."""
        weight = self.layer.weight
        if noise is None or not self._is_noisy:
            return FactoredGradient((weight,), x, of_outputs)
        outputs, inputs = weight.shape
        noise_in = noise[0, self.noise_at : self.noise_at + inputs]
        noise_out = noise[0, self.noise_at + inputs : self.noise_at + inputs + outputs]
        return FactoredGradient((weight, self.sigmas[0]), x, of_outputs, (noise_in, noise_out))


class FusedPass:
    """What the kernels are told of a network; its parameters are read anew at each call."""

    def __init__(self, network: QNetwork) -> None:
        torso, head = network.torso, network.head
        assert isinstance(torso, StackedTorso)
        assert isinstance(head, LinearHead | DuelingHead)
        self._stack, self._size, self._dtype = torso.stack, head.size, network.dtype
        layers = dense_layers(torso, head)
        self.noisy = [layer for layer in layers if isinstance(layer, NoisyLinear)]
        noise_at, dense = 0, []
        for place, layer in enumerate(layers):
            dense.append(_Dense(layer, noise_at, LowPrecisionWeight() if place == 0 else None))
            noise_at += layer.in_features + layer.out_features
        self._hidden, *state, self._actions = dense
        self._dense = [self._hidden, self._actions, *state]

    def outputs(
        self, frames: Frames, draws: Noise | None, unwritten: list[FactoredGradient] | None = None
    ) -> Float[Tensor, "B A Z"]:
        """Compute the head's numbers under the noise that is made of `draws` from N(0, 1), or under none.

        The draws are for all layers, one after the other, and overwritten. The backward pass may leave the
        gradient of the hidden layer's weights in `unwritten`, and none to autograd.
        """
        if torch.is_grad_enabled():
            leaves = self.parameters()
            outputs: Tensor = _Outputs.apply(self, frames, draws, unwritten, *leaves)  # type: ignore[no-untyped-call]
            return outputs
        return self.forward(self.layers(frames, draws), draws, None)

    def parameters(self) -> list[Tensor]:
        """List what gets a gradient."""
        of_dense = [parameter for layer in self._dense for parameter in layer.parameters]
        return [*self._stack.parameters(), *of_dense]

    def layers(self, frames: Frames, noise: Noise | None) -> Layers:
        """Describe a pass to the kernels."""
        hidden, *head = self._dense
        of_head = [layer.described(torch.float32, noise) for layer in head]
        chain, biases = self._stack.arguments(frames)
        return Layers(chain=chain, biases=biases, dense=[hidden.described(self._dtype, noise), *of_head])

    def forward(self, layers: Layers, draws: Noise | None, kept: Kept | None) -> Float[Tensor, "B A Z"]:
        """Compute the outputs of a pass."""
        actions = self._actions.layer.out_features // self._size
        outputs = torch.empty(layers.batch, actions, self._size)
        forward(layers, draws=draws, outputs=outputs, kept=kept)
        return outputs

    def gradients(
        self,
        layers: Layers,
        kept: Kept,
        upstream: Float[Tensor, "B A Z"],
        noise: Noise | None,
        unwritten: list[FactoredGradient] | None,
    ) -> list[Tensor | None]:
        """Compute the parameters' gradients; the hidden weights' may be left in `unwritten`."""
        stack, hidden = self._stack, self._hidden
        of_stack, rooms = stack.empty_gradients(), [layer.empty_gradients(noise) for layer in self._dense]
        of_units = torch.empty(layers.batch, layers.num_units, dtype=self._dtype)
        if unwritten is not None:
            product = hidden.factored(kept.seen(layers.batch), of_units, noise)
            if may_be_factored(product):
                rooms[0][0::2] = None, None
                unwritten.append(product)
        backward(layers, kept, upstream.contiguous(), of_chain=of_stack, of_dense=rooms, of_units=of_units)
        rows = zip(self._dense, rooms, strict=True)
        of_dense = [tensor for layer, room in rows for tensor in room[: len(layer.parameters)]]
        return [*stack.gradients(of_stack[0]), *of_stack[1], *of_dense]


class _Outputs(torch.autograd.Function):
    """A network's outputs, and the gradients of its parameters; bytes have none."""

    @staticmethod
    def forward(
        ctx: Any,
        fused: FusedPass,
        frames: Frames,
        draws: Noise | None,
        unwritten: list[FactoredGradient] | None,
        *parameters: Tensor,
    ) -> Tensor:
        layers = fused.layers(frames, draws)
        kept = Kept(layers)
        outputs = fused.forward(layers, draws, kept)
        ctx.fused, ctx.layers, ctx.kept, ctx.noise, ctx.unwritten = fused, layers, kept, draws, unwritten
        ctx.save_for_backward(frames, *parameters)  # autograd refuses one that is changed meanwhile
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        _unchanged = ctx.saved_tensors  # raises if one was changed
        found = ctx.fused.gradients(ctx.layers, ctx.kept, gradients[0], ctx.noise, ctx.unwritten)
        return None, None, None, None, *found


def dense_layers(torso: nn.Module, head: nn.Module) -> Sequence[nn.Linear]:
    """List the hidden layer, the state's of a dueling head, and the actions'."""
    found = [
        torso.hidden,
        *([head.value, head.advantage] if isinstance(head, DuelingHead) else [head.output]),
    ]
    return [layer for layer in found if isinstance(layer, nn.Linear)]
