"""ReDo, recycling dormant units. Sokar et al. (2023), "The dormant neuron phenomenon in deep RL".

A unit is a channel of a convolution or a unit of the hidden layer. Its score is its mean activation over
sampled states, divided by the mean over the units of its layer; it is dormant if the score is at most τ:

    incoming weights   w ← w′, initial weights       outgoing weights   w ← 0

so that recycling a unit that was 0 changes no output. docs/deviations.md has the differences from the
authors' code (L12). B batch, S stacked frames, H×W one frame, U units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import ConvolutionalTorso, scaled
from atari_dqn.minibatch import Frames

Change = tuple[Tensor, tuple[Tensor | slice, ...], Tensor | float]
"""A weight, the place of some of its numbers, and their new values."""


@dataclass(frozen=True, slots=True)
class Recycled:
    """The number of units that were dormant, and were recycled, after a number of updates."""

    updates: int
    dormant: int
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReDo:
    """Recycles the online network's dormant units every `period_updates`, and clears their averages."""

    period_updates: int
    threshold: float
    """τ."""
    online: QNetwork
    optimizer: Optimizer
    frames: Callable[[int], Frames]
    """Samples states, after a number of updates."""
    fresh: Callable[[int], QNetwork]
    """Makes a network with initial weights, after a number of updates."""
    report: Callable[[Recycled], None]

    def updates_until(self, updates: int) -> int:
        """Compute how many updates, after `updates` of them, are made before the next recycling."""
        return self.period_updates - updates % self.period_updates

    @torch.no_grad()
    def after(self, updates: int) -> None:
        """Recycle if it is due after `updates` updates."""
        if updates % self.period_updates:
            return
        units = activations(self._plain_copy(updates), self.frames(updates).cpu())
        fresh = self.fresh(updates)
        *convolutions, hidden = units
        streams = hidden.chunk(self.online.head.streams, dim=1)  # the hidden layers of a head are one layer
        masks = [dormant_units(layer, self.threshold) for layer in convolutions]
        masks.append(torch.cat([dormant_units(layer, self.threshold) for layer in streams]))
        incoming = [_incoming(self.online, fresh, number, dormant) for number, dormant in enumerate(masks)]
        outgoing = [_outgoing(self.online, number, dormant) for number, dormant in enumerate(masks)]
        for weight, index, values in chain(*incoming, *outgoing):
            weight[index] = values
            for average in self._averages(weight):
                average[index] = 0
        counts = [int(mask.sum()) for mask in masks]
        self.report(Recycled(updates, sum(counts), sum(len(mask) for mask in masks)))

    def _plain_copy(self, updates: int) -> QNetwork:
        """Copy the online network's weights to a new network on the CPU, whose layers are plain.

        In the online network itself, which may compute on another device or in another way, units near the
        threshold could be dormant on one machine alone.
        """
        plain = self.fresh(updates)
        plain.load_state_dict(self.online.state_dict())
        return plain

    def _averages(self, weight: Tensor) -> Iterator[Tensor]:
        """Yield the optimizer's averages of a weight, which have its shape."""
        for value in self.optimizer.state.get(weight, {}).values():
            if isinstance(value, Tensor) and value.shape == weight.shape:
                yield value


def activations(network: QNetwork, frames: Frames) -> list[Tensor]:
    """Compute the units of every layer with a ReLU: of the convolutions and of the hidden layer."""
    torso, x, found = _torso(network), scaled(frames), []
    for convolution in torso.convolutions:
        x = F.relu(convolution(x))
        found.append(x)
    return [*found, F.relu(torso.hidden(x.flatten(1)))]


def dormant_units(units: Float[Tensor, "B U *HW"], threshold: float) -> Bool[Tensor, "U"]:
    """Return which units are dormant. Sokar et al. (2023), definition 3.1; all are in a layer of zeros."""
    mean = units.flatten(2).mean(dim=(0, 2)) if units.dim() > 2 else units.mean(dim=0)
    return mean <= threshold * mean.mean()


def _torso(network: QNetwork) -> ConvolutionalTorso:
    assert isinstance(network.torso, ConvolutionalTorso), "the rules of the spec refuse other torsos"
    return network.torso


def _layers(network: QNetwork) -> list[nn.Module]:
    """List the layers with a ReLU, in order."""
    torso = _torso(network)
    return [*torso.convolutions, torso.hidden]


def _incoming(online: QNetwork, fresh: QNetwork, number: int, dormant: Bool[Tensor, "U"]) -> Iterator[Change]:
    """Yield the new weights and biases of a layer's dormant units."""
    ours, initial = (_layers(network)[number].parameters() for network in (online, fresh))
    for weight, new in zip(ours, initial, strict=True):
        place = dormant.to(weight.device)
        yield weight, (place,), new.to(weight.device)[place]


def _outgoing(online: QNetwork, number: int, dormant: Bool[Tensor, "U"]) -> Iterator[Change]:
    """Yield zeros for the outgoing weights of a layer's dormant units."""
    for weight, units in _outgoing_weights(online, number):
        place = dormant[units].to(weight.device)
        pixels = weight.shape[1] // len(place)  # of a channel, each an input of a fully connected layer
        yield weight, (slice(None), place.repeat_interleave(pixels)), 0.0


def _outgoing_weights(online: QNetwork, number: int) -> Iterator[tuple[Tensor, slice]]:
    """Yield the outgoing weights of a layer, with the range of its units that are inputs of each."""
    layers, every = _layers(online), slice(None)
    if number + 1 < len(layers):
        yield next(layers[number + 1].parameters()), every
        return
    outputs = {name: next(part.parameters()) for name, part in online.head.named_children()}
    if online.head.streams == 1:
        yield from ((weight, every) for weight in outputs.values())
        return
    units = outputs["value"].shape[1]
    yield outputs["value"], slice(units)
    yield outputs["advantage"], slice(units, None)
