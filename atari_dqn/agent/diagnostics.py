"""Diagnostics of value distributions and hidden units, for logs. No noise is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.rules import gather_q
from atari_dqn.agent.unroll import Unroll
from atari_dqn.minibatch import Minibatch, SequenceBatch

NAMES = ("action_gap", "std_return", "lowest_atom_mass", "highest_atom_mass", "crossed_share")


class Diagnostics(Protocol):
    """Computes diagnostics of a network on a minibatch, without changing anything."""

    def prediction_report(self, network: Any, batch: Any) -> dict[str, float]:
        """Compute the mean action gap, and the mean statistics of the selected actions' distributions.

        A statistic that the kind of distribution does not have is NaN: scalars have no standard deviation,
        quantiles no atoms, and categorical distributions no crossed quantiles.
        """
        ...

    def dead_unit_share(self, network: Any, batch: Any) -> float:
        """Compute the share of hidden units that are 0 for the whole minibatch."""
        ...


class TransitionDiagnostics:
    """Diagnostics on minibatches of transitions, for the states in which actions were selected."""

    @torch.inference_mode()
    def prediction_report(self, network: QNetwork, batch: Minibatch) -> dict[str, float]:
        """Compute the mean action gap, and the mean statistics of the selected actions' distributions."""
        predicted = network.distribution(batch.s_tm1)
        statistics = predicted.statistics()
        return _report(
            predicted.q_values(),
            {name: gather_q(values, batch.a_tm1).mean() for name, values in statistics.items()},
        )

    @torch.inference_mode()
    def dead_unit_share(self, network: QNetwork, batch: Minibatch) -> float:
        """Compute the share of hidden units that are 0 for every state."""
        return _dead_share(network.features(batch.s_tm1))


@dataclass(frozen=True, slots=True)
class SequenceDiagnostics:
    """Diagnostics on minibatches of sequences, over the steps that are learned from."""

    unroll: Unroll

    @torch.inference_mode()
    def prediction_report(self, network: QNetwork, batch: SequenceBatch) -> dict[str, float]:
        """Compute the mean action gap; sequences are learned by scalar values, which have no distribution."""
        return _report(self.unroll.q_values(network, batch)[:, :-1][batch.mask], {})

    @torch.inference_mode()
    def dead_unit_share(self, network: QNetwork, batch: SequenceBatch) -> float:
        """Compute the share of hidden units that are 0 in every step."""
        return _dead_share(self.unroll.features(network, batch)[:, :-1][batch.mask])


def _report(q: Tensor, means: dict[str, Tensor]) -> dict[str, float]:
    best = q.topk(2, dim=1).values
    found = {"action_gap": (best[:, 0] - best[:, 1]).mean(), **means}
    return dict.fromkeys(NAMES, math.nan) | {name: float(mean) for name, mean in found.items()}


def _dead_share(units: Tensor) -> float:
    return float((units == 0).all(dim=0).float().mean())
