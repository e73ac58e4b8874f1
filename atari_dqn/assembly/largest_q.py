"""The bound of q-values that follows from a spec."""

from __future__ import annotations

import math

import torch

from atari_dqn.agent.sequence_loss import rescaled
from atari_dqn.spec.schema import Spec


def largest_q(spec: Spec) -> float:
    """Compute the largest |Q| that rewards allow: `max_abs_reward` / (1 − γ), or h of it."""
    learner = spec.learner
    bound = learner.max_abs_reward / (1 - learner.discount) if learner.discount < 1 else math.inf
    return float(rescaled(torch.tensor(bound))) if learner.value_rescaling else bound
