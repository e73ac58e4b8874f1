"""The squared TD error without the factor ½, whose gradient 2δ is clipped to ±1, as in nnabla-rl's DQN.

pip install docs/results/track_a/doubled_loss       # then: --set learner.loss=doubled
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from atari_dqn.agent.losses import LossFn, ScalarLoss, TDLoss
from atari_dqn.agent.targets import TargetRule
from atari_dqn.agent.value_kinds import Settings


def doubled_error(td_error: Tensor) -> Tensor:
    """Compute δ² up to |δ| = ½ and |δ| − ¼ beyond, elementwise."""
    return 2 * F.huber_loss(td_error, torch.zeros_like(td_error), reduction="none", delta=0.5)


def doubled(target_rule: TargetRule, _: Settings) -> LossFn:
    """Make the loss from a target rule."""
    return TDLoss(target_rule=target_rule, distribution_loss=ScalarLoss(doubled_error))
