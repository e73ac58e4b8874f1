"""Periodic resets of networks and optimizer. Nikishin et al. (2022); D'Oro et al. (2023).

Every weight of a network belongs to one of two parts:

    encoder        convolutions of the torso, transition model     w ← keep · w + perturb · fresh
    everything else: hidden layer, head, prediction                w ← fresh

The first rule is shrink-and-perturb, Ash & Adams (2020). A fresh weight is an initial weight of the spec's
distribution, from a random stream that is named by the number of the reset and by the network.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch.optim import Optimizer

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.optimizer_state import averages_of
from atari_dqn.agent.spectral import spectral_layers


@dataclass(frozen=True, kw_only=True)
class Resets:
    """Resets networks and optimizer after each `period_updates`, up to and including `last_updates`."""

    period_updates: int
    last_updates: int
    keep: float
    """Factor of an encoder's weights."""
    perturb: float
    """Factor of the fresh weights that are added to them."""
    networks: Mapping[str, QNetwork]
    """The online network and the target network by name; one of them if both are the same object."""
    optimizer: Optimizer
    fresh: Callable[[int, str], QNetwork]
    """Makes a network with fresh weights, from the number of the reset and the name of the network."""

    def updates_until(self, updates: int) -> int:
        """Compute how many updates, after `updates` of them, are made before the next reset."""
        next_reset = self._last_reset(updates) + self.period_updates
        return next_reset - updates if next_reset <= self.last_updates else sys.maxsize

    def after(self, updates: int) -> None:
        """Reset if a reset is due after `updates` updates."""
        if updates and updates == self._last_reset(updates):
            self.reset(updates // self.period_updates)

    @torch.no_grad()
    def reset(self, number: int) -> None:
        """Reset the weights of every network, and all averages and counts of the optimizer.

        The singular vectors of normalised convolutions become those of their new weights.
        """
        for name, network in self.networks.items():
            fresh = dict(self.fresh(number, name).named_parameters())
            for key, weight in network.named_parameters():
                if is_of_encoder(key):
                    weight.mul_(self.keep).add_(fresh[key].to(weight.device), alpha=self.perturb)
                else:
                    weight.copy_(fresh[key])
            for layer in spectral_layers(network):
                layer.decompose()
        for average in averages_of(self.optimizer):
            average.zero_()

    def _last_reset(self, updates: int) -> int:
        return last_reset(updates, period_updates=self.period_updates, last_updates=self.last_updates)


def last_reset(updates: int, *, period_updates: int, last_updates: int) -> int:
    """Compute the number of updates at the latest reset; 0 before the first."""
    return min(updates, last_updates) // period_updates * period_updates


def is_of_encoder(name: str) -> bool:
    """Return whether the weight of this name belongs to the encoder, which a reset keeps in part."""
    return name.startswith(("torso.", "transition.")) and not name.startswith("torso.hidden.")
