"""Probes: diagnostics of a network on a minibatch, for transitions and for sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from atari_dqn.agent import diagnostics
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.unroll import Unroll
from atari_dqn.minibatch import Minibatch, SequenceBatch


class Probes(Protocol):
    """Computes diagnostics of a network on a minibatch, without noise and without changing anything."""

    def prediction_report(self, network: Any, batch: Any) -> dict[str, float]:
        """Compute the statistics named in `diagnostics.NAMES`; NaN where the agent has none."""
        ...

    def dead_unit_share(self, network: Any, batch: Any) -> float:
        """Compute the share of hidden units that are 0 for the whole minibatch."""
        ...


class TransitionProbes:
    """The diagnostics on minibatches of transitions."""

    def prediction_report(self, network: QNetwork, batch: Minibatch) -> dict[str, float]:
        """Compute the statistics of the predictions for the states."""
        return diagnostics.prediction_report(network, batch.s_tm1, batch.a_tm1)

    def dead_unit_share(self, network: QNetwork, batch: Minibatch) -> float:
        """Compute the share of hidden units that are 0 for every state."""
        return diagnostics.dead_unit_share(network, batch.s_tm1)


@dataclass(frozen=True, slots=True)
class SequenceProbes:
    """The diagnostics on minibatches of sequences, over the steps that are learned from."""

    unroll: Unroll

    @torch.inference_mode()
    def prediction_report(self, network: QNetwork, batch: SequenceBatch) -> dict[str, float]:
        """Compute the mean action gap; sequences are learned by scalar values, which have no distribution."""
        best = self.unroll.q_values(network, batch)[:, :-1][batch.mask].topk(2, dim=1).values
        gap = (best[:, 0] - best[:, 1]).mean()
        return dict.fromkeys(diagnostics.NAMES, math.nan) | {"action_gap": float(gap)}

    @torch.inference_mode()
    def dead_unit_share(self, network: QNetwork, batch: SequenceBatch) -> float:
        """Compute the share of hidden units that are 0 in every step."""
        features = self.unroll.features(network, batch)[:, :-1][batch.mask]
        return float((features == 0).all(dim=0).float().mean())
