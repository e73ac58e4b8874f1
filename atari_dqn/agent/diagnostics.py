"""Statistics of value distributions and hidden units, for logs. No noise is drawn. B states."""

from __future__ import annotations

import math

import torch
from jaxtyping import Int64
from torch import Tensor

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.rules import gather_q
from atari_dqn.minibatch import Frames

NAMES = ("action_gap", "std_return", "lowest_atom_mass", "highest_atom_mass", "crossed_share")


@torch.inference_mode()
def prediction_report(network: QNetwork, frames: Frames, actions: Int64[Tensor, "B"]) -> dict[str, float]:
    """Compute the mean action gap, and the mean statistics of the selected actions' distributions.

    A statistic that the kind of distribution does not have is NaN: scalars have no standard deviation,
    quantiles no atoms, and categorical distributions no crossed quantiles.
    """
    predicted = network.distribution(frames)
    best = predicted.q_values().topk(2, dim=1).values
    means = {
        "action_gap": (best[:, 0] - best[:, 1]).mean(),
        **{name: gather_q(values, actions).mean() for name, values in predicted.statistics().items()},
    }
    return dict.fromkeys(NAMES, math.nan) | {name: float(mean) for name, mean in means.items()}


@torch.inference_mode()
def dead_unit_share(network: QNetwork, frames: Frames) -> float:
    """Compute the share of hidden units that are 0 for every one of these stacked frames."""
    return float((network.features(frames) == 0).all(dim=0).float().mean())
