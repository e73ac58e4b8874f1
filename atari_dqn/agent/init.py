"""Initial weights. The gain is √2 where layers have a ReLU (`QNetwork.encoder_parts`), otherwise 1.

`streams`: the number of layers that are stored as one, 2 for a dueling head (`Torso.hidden`), otherwise 1.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import NoisyLinear
from atari_dqn.agent.spectral import SpectralConv2d

RELU_GAIN = math.sqrt(2.0)
Layer = nn.Conv2d | nn.Linear


def _uniform(layer: nn.Module, bound: float, generator: torch.Generator) -> None:
    for parameter in layer.parameters():
        _fill(parameter, torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))


@torch.no_grad()
def _fill(parameter: Tensor, values: Tensor) -> None:
    """Copy values that were drawn in index order, whatever the parameter's memory format."""
    parameter.copy_(values)


def fan_in_uniform(layer: Layer, gain: float, generator: torch.Generator, streams: int) -> None:
    """Draw weights and biases from U(±1/√fan_in), as DeepMind's Lua code does; the gain is not used."""
    del gain, streams  # every stream has the same fan_in
    _uniform(layer, 1 / math.sqrt(layer.weight[0].numel()), generator)


def he_uniform(layer: Layer, gain: float, generator: torch.Generator, streams: int) -> None:
    """Draw weights from U(±gain·√(3/fan_in)), which keeps the variance; biases are 0. He et al. (2015)."""
    del streams  # every stream has the same fan_in
    _uniform(layer, gain * math.sqrt(3 / layer.weight[0].numel()), generator)
    _zero_bias(layer)


def xavier_uniform(layer: Layer, gain: float, generator: torch.Generator, streams: int) -> None:
    """Draw weights from U(±√(6 / (fan_in + fan_out))); biases are 0 and the gain is not used.

    Glorot & Bengio (2010). A convolution's fan_out is its filters times its kernel's pixels.
    """
    del gain
    fan_out = layer.weight.numel() // layer.weight.shape[1] // streams
    _uniform(layer, math.sqrt(6 / (layer.weight[0].numel() + fan_out)), generator)
    _zero_bias(layer)


def orthogonal(layer: Layer, gain: float, generator: torch.Generator, streams: int) -> None:
    """Draw an orthogonal matrix times the gain for each stream; biases are 0. Saxe et al. (2014)."""
    empty = torch.empty(layer.weight.shape).chunk(streams)
    _fill(layer.weight, torch.cat([nn.init.orthogonal_(part, gain, generator=generator) for part in empty]))
    _zero_bias(layer)


def _zero_bias(layer: Layer) -> None:
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


INITIALIZERS = {make.__name__: make for make in (fan_in_uniform, he_uniform, xavier_uniform, orthogonal)}


def initialize(network: QNetwork, *, init: str, generator: torch.Generator) -> None:
    """Draw all weights of a network from `generator`, in the order of its layers."""
    single, stacked = (partial(INITIALIZERS[init], streams=count) for count in (1, network.head.streams))
    encoder = ((part, RELU_GAIN if has_relu else 1.0) for part, has_relu in network.encoder_parts)
    for part, gain in (*encoder, (network.head, 1.0)):
        for layer in part.modules():
            if isinstance(layer, NoisyLinear):
                layer.initialize(generator)
            elif isinstance(layer, nn.Conv2d | nn.Linear):
                # the hidden layers of a head's streams are stored as one, and each is drawn as its own layer
                fill = stacked if layer in network.hidden_layer.modules() else single
                fill(layer, gain, generator)
            if isinstance(layer, SpectralConv2d):
                layer.decompose()
