"""Networks whose forward and backward passes are one kernel call each (docs/decisions/0036).

B batch, S stacked frames, H×W one frame, A actions, Z numbers per action.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
from atari_dqn.fast.cpu.arguments import parameter_address
from atari_dqn.fast.cpu.factored import FactoredGradient, fits_factors, may_be_factored
from atari_dqn.fast.cpu.passes import Kept, Layer, LayerGradients, Layers, backward, forward
from atari_dqn.fast.low_precision import LowPrecisionWeight
from atari_dqn.fast.torsos import StackedTorso, kernels_read
from atari_dqn.minibatch import Frames

_FP32_BYTES = 4
Noise = Float[Tensor, "1 N"]
"""The noise of all layers, concatenated: inputs, then outputs, of each."""


class FusedNetwork(QNetwork):
    """A `QNetwork` whose forward pass is one kernel call, and whose backward pass is another.

    For one image, Python and PyTorch take as long between layers as the kernels in them. The modules inside
    are not called, and neither are their hooks. Frames that kernels do not read, and batches with several
    noise samples, are computed layer by layer.
    """

    fused: FusedPass

    def accelerate(self) -> None:
        """Set the attributes that `QNetwork` does not have."""
        self.fused = FusedPass(self)

    def distribution(
        self, frames: Frames, rng: Rng | None = None, *, noise_rows: int = 1
    ) -> ValueDistribution:
        """Compute the value distribution of every action."""
        noisy = self.fused.noisy if rng is not None else []
        if not kernels_read(frames) or (noisy and noise_rows > 1):
            return super().distribution(frames, rng, noise_rows=noise_rows)
        draws = normal(rng, 1, num_draws(noisy)) if rng is not None and noisy else None
        value: ValueDistribution = self.value(self.fused.outputs(frames, draws))
        return value


class _Dense:
    """A fully connected layer and the offset of its noise in that of all layers."""

    def __init__(self, layer: nn.Linear, noise_at: int, cache: LowPrecisionWeight | None) -> None:
        self.layer, self.noise_at, self._cache = layer, noise_at, cache
        self._is_noisy = isinstance(layer, NoisyLinear)

    @property
    def sigmas(self) -> tuple[Tensor, ...]:
        """The σ parameters of weight and bias, if the layer is noisy."""
        layer = self.layer
        return (layer.weight_sigma, layer.bias_sigma) if isinstance(layer, NoisyLinear) else ()

    @property
    def parameters(self) -> list[Tensor]:
        """The weight, the bias and, if the layer is noisy, the σ of both."""
        return [self.layer.weight, self.layer.bias, *self.sigmas]

    def arguments(self, dtype: torch.dtype, noise: Noise | None) -> Layer:
        """Collect the layer's arguments of the kernels."""
        weight = self.layer.weight
        outputs, inputs = weight.shape
        at, bias = parameter_address(weight), parameter_address(self.layer.bias)
        if noise is None or not self._is_noisy:
            at = at if self._cache is None else self._cache.of(weight, dtype).data_ptr()
            return at, bias, 0, 0, 0, 0, inputs, outputs
        noise_in = noise.data_ptr() + self.noise_at * _FP32_BYTES
        weight_deviation, bias_deviation = map(parameter_address, self.sigmas)
        noise_out = noise_in + inputs * _FP32_BYTES
        return at, bias, weight_deviation, bias_deviation, noise_in, noise_out, inputs, outputs

    def empty_gradients(self, noise: Noise | None) -> LayerGradients:
        """Allocate the gradients of the parameters; without noise σ has none."""
        due = self.parameters if noise is not None else self.parameters[:2]
        return [torch.empty_like(parameter) for parameter in due] + [None] * (4 - len(due))

    def factored(self, x: Tensor, upstream: Tensor, noise: Noise | None) -> FactoredGradient:
        """Make the factored gradient of the weight and, under noise, of its σ."""
        weight = self.layer.weight
        if noise is None or not self._is_noisy:
            return FactoredGradient((weight,), x, upstream)
        outputs, inputs = weight.shape
        noise_in = noise[0, self.noise_at : self.noise_at + inputs]
        noise_out = noise[0, self.noise_at + inputs : self.noise_at + inputs + outputs]
        return FactoredGradient((weight, self.sigmas[0]), x, upstream, (noise_in, noise_out))


class FusedPass:
    """The kernel calls of a network; they read the current parameters each time."""

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
        self._unwritten: list[FactoredGradient] | None = None

    @property
    def fits_factors(self) -> bool:
        """Whether the gradient of the hidden layer's weight may be kept as factors, in small minibatches."""
        return fits_factors(self._hidden.layer.weight)

    @contextmanager
    def appending_to(self, unwritten: list[FactoredGradient]) -> Iterator[None]:
        """Let the backward passes in the context append the hidden weight's gradient, if it can be factored.

        Elsewhere they compute it in full.
        """
        self._unwritten = unwritten
        try:
            yield
        finally:
            self._unwritten = None

    def outputs(self, frames: Frames, draws: Noise | None) -> Float[Tensor, "B A Z"]:
        """Compute the head's outputs under the noise made from `draws` from N(0, 1), or without noise.

        `draws` has the numbers of all layers, one after the other, and is overwritten.
        """
        if torch.is_grad_enabled():
            outputs: Tensor = _Outputs.apply(self, frames, draws, *self.parameters())  # type: ignore[no-untyped-call]
            return outputs
        return self.forward(self.layers(frames, draws), draws, None)

    def parameters(self) -> list[Tensor]:
        """List the parameters that get a gradient."""
        of_dense = [parameter for layer in self._dense for parameter in layer.parameters]
        return [*self._stack.parameters(), *of_dense]

    def layers(self, frames: Frames, noise: Noise | None) -> Layers:
        """Collect the arguments of a pass."""
        hidden, *head = self._dense
        head_arguments = [layer.arguments(torch.float32, noise) for layer in head]
        stack, biases = self._stack.arguments(frames)
        hidden_arguments = hidden.arguments(self._dtype, noise)
        return Layers(stack=stack, biases=biases, dense=[hidden_arguments, *head_arguments])

    def forward(self, layers: Layers, draws: Noise | None, kept: Kept | None) -> Float[Tensor, "B A Z"]:
        """Compute the outputs of a forward pass."""
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
        required: Sequence[bool],
    ) -> list[Tensor | None]:
        """Compute the gradients of the parameters; see `appending_to` for that of the hidden weight.

        `required` are the parameters' `requires_grad` in the forward pass.
        """
        stack, hidden = self._stack, self._hidden
        stack_gradients = stack.empty_gradients()
        layer_gradients = [layer.empty_gradients(noise) for layer in self._dense]
        hidden_gradient = torch.empty(layers.batch, layers.num_units, dtype=self._dtype)
        if self._unwritten is not None:
            product = hidden.factored(kept.encoded(layers.batch), hidden_gradient, noise)
            if may_be_factored(product) and self._are_due(product.weights, required):
                layer_gradients[0][0::2] = None, None
                self._unwritten.append(product)
        backward(
            layers,
            kept,
            upstream.contiguous(),
            stack_gradients=stack_gradients,
            layer_gradients=layer_gradients,
            hidden_gradient=hidden_gradient,
        )
        weight_gradients, bias_gradients = stack_gradients
        rows = zip(self._dense, layer_gradients, strict=True)
        of_dense = [tensor for layer, gradients in rows for tensor in gradients[: len(layer.parameters)]]
        return [*stack.gradients(weight_gradients), *bias_gradients, *of_dense]

    def _are_due(self, weights: Sequence[Tensor], required: Sequence[bool]) -> bool:
        """Return whether all `weights` get a gradient: none was frozen in the forward pass, or is now."""
        rows = zip(self.parameters(), required, strict=True)
        due = {id(weight) for weight, was_required in rows if was_required and weight.requires_grad}
        return all(id(weight) in due for weight in weights)


class _Outputs(torch.autograd.Function):
    """The outputs of a network and the gradients of its parameters."""

    @staticmethod
    def forward(
        ctx: Any,
        fused: FusedPass,
        frames: Frames,
        draws: Noise | None,
        *parameters: Tensor,
    ) -> Tensor:
        layers = fused.layers(frames, draws)
        kept = Kept(layers)
        outputs = fused.forward(layers, draws, kept)
        ctx.fused, ctx.layers, ctx.noise = fused, layers, draws
        # autograd raises if one was changed, and frees what was kept, the images too, after the backward pass
        ctx.save_for_backward(kept.values, layers.stack.give_pixels(), *parameters)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        kept = Kept(ctx.layers, ctx.saved_tensors[0])
        required = ctx.needs_input_grad[3:]
        found = ctx.fused.gradients(ctx.layers, kept, gradients[0], ctx.noise, required)
        return None, None, None, *found


def dense_layers(torso: nn.Module, head: nn.Module) -> Sequence[nn.Linear]:
    """List the hidden layer, the value layer of a dueling head, and the layer of the actions.

    The list is empty unless all are linear layers or all are noisy ones, with biases.
    """
    of_head = (head.value, head.advantage) if isinstance(head, DuelingHead) else (head.output,)
    layers = [torso.hidden, *of_head]
    found = [layer for layer in layers if isinstance(layer, nn.Linear) and layer.bias is not None]
    classes = {type(layer) for layer in layers}
    return found if len(found) == len(layers) and classes in ({nn.Linear}, {NoisyLinear}) else []
