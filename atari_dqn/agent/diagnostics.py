"""What a network predicts, as numbers for people. Looking changes nothing, and draws no noise. B states."""

from __future__ import annotations

import math

import torch
from jaxtyping import Int64
from torch import Tensor

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.rules import taken
from atari_dqn.minibatch import Frames

NAMES = ("action_gap", "std_return", "lowest_atom_mass", "highest_atom_mass", "crossed_share")


@torch.inference_mode()
def prediction_report(network: QNetwork, frames: Frames, actions: Int64[Tensor, "B"]) -> dict[str, float]:
    """Return means over states: by how much the best action leads, and the shape of the taken ones' returns.

    NaN where a prediction has no such thing: a value has no spread, quantiles no atoms, masses no order.
    """
    predicted = network.predict(frames)
    best = predicted.q_values().topk(2, dim=1).values
    means = {
        "action_gap": (best[:, 0] - best[:, 1]).mean(),
        **{name: taken(values, actions).mean() for name, values in predicted.shape().items()},
    }
    return dict.fromkeys(NAMES, math.nan) | {name: float(mean) for name, mean in means.items()}
