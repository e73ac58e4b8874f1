"""The kinds of value distribution: the network and the loss of each. Nothing else depends on the kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from atari_dqn.agent import rules
from atari_dqn.agent.distributions import CategoricalValue, QuantileValue, ScalarValue, ValueLayer
from atari_dqn.agent.heads import Head
from atari_dqn.agent.iqn import ImplicitQuantileNetwork
from atari_dqn.agent.losses import (
    CATEGORICAL_PRIORITIES,
    CategoricalLoss,
    LossFn,
    ScalarLoss,
    TDLoss,
    quantile_loss,
)
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.targets import TargetRule
from atari_dqn.agent.torsos import Torso

MakeParts = Callable[[int], tuple[Torso, Head]]
"""Makes a torso, and a head with the given number of outputs per action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of all kinds; each kind reads its own, and the others keep their defaults."""

    precision: str = "fp32"
    v_min: float = 0.0
    v_max: float = 0.0
    num_atoms: int = 1
    num_quantiles: int = 1
    num_fractions: int = 1
    num_target_fractions: int = 1
    num_policy_fractions: int = 1
    priority: str = "kl"


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of value distribution: factories of its network and its loss."""

    network: Callable[[MakeParts, Settings], QNetwork]
    loss: Callable[[TargetRule, Settings], LossFn]


def huber(target_rule: TargetRule, _: Settings) -> LossFn:
    """Make the Huber loss, whose gradient is the TD error clipped to ±1. Mnih et al. (2015)."""
    return TDLoss(target_rule=target_rule, distribution_loss=ScalarLoss(rules.huber))


def mse(target_rule: TargetRule, _: Settings) -> LossFn:
    """Make the squared loss ½δ²."""
    return TDLoss(target_rule=target_rule, distribution_loss=ScalarLoss(rules.mse))


def _with(make_parts: MakeParts, value: ValueLayer, settings: Settings) -> QNetwork:
    return QNetwork(*make_parts(value.size), value, precision=settings.precision)


VALUE_KINDS: dict[str, ValueKind] = {
    "scalar": ValueKind(lambda make, of: _with(make, ScalarValue(), of), huber),
    "c51": ValueKind(
        lambda make, of: _with(
            make, CategoricalValue(v_min=of.v_min, v_max=of.v_max, num_atoms=of.num_atoms), of
        ),
        lambda rule, of: TDLoss(
            target_rule=rule, distribution_loss=CategoricalLoss(CATEGORICAL_PRIORITIES[of.priority])
        ),
    ),
    "qr_dqn": ValueKind(
        lambda make, of: _with(make, QuantileValue(num_quantiles=of.num_quantiles), of),
        lambda rule, _: TDLoss(target_rule=rule, distribution_loss=quantile_loss),
    ),
    "iqn": ValueKind(
        lambda make, of: ImplicitQuantileNetwork(
            *make(1), num_policy_quantiles=of.num_policy_fractions, precision=of.precision
        ),
        lambda rule, of: TDLoss(
            target_rule=rule,
            distribution_loss=quantile_loss,
            num_quantiles=of.num_fractions,
            num_target_quantiles=of.num_target_fractions,
        ),
    ),
}
