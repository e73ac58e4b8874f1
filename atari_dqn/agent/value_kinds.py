"""The kinds of value distribution: the network and the loss of each. Nothing else depends on the kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from atari_dqn.agent import rules
from atari_dqn.agent.distributions import CategoricalValue, QuantileValue, ScalarValue, ValueLayer
from atari_dqn.agent.heads import Head
from atari_dqn.agent.hl_gauss import HLGaussLoss
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
    """The settings `s` of all kinds; each kind reads its own, and the others keep their defaults."""

    precision: str = "fp32"
    v_min: float = 0.0
    v_max: float = 0.0
    num_atoms: int = 1
    sigma_bins: float = 0.0
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


def _network(make_parts: MakeParts, value: ValueLayer, settings: Settings) -> QNetwork:
    return QNetwork(*make_parts(value.size), value, precision=settings.precision)


def _categorical_network(make_parts: MakeParts, s: Settings) -> QNetwork:
    return _network(make_parts, CategoricalValue(v_min=s.v_min, v_max=s.v_max, num_atoms=s.num_atoms), s)


VALUE_KINDS: dict[str, ValueKind] = {
    "scalar": ValueKind(lambda make, s: _network(make, ScalarValue(), s), huber),
    "c51": ValueKind(
        _categorical_network,
        lambda rule, s: TDLoss(
            target_rule=rule, distribution_loss=CategoricalLoss(CATEGORICAL_PRIORITIES[s.priority])
        ),
    ),
    "hl_gauss": ValueKind(
        _categorical_network,
        lambda rule, s: TDLoss(
            target_rule=rule,
            distribution_loss=HLGaussLoss(
                sigma_bins=s.sigma_bins, priority=CATEGORICAL_PRIORITIES[s.priority]
            ),
        ),
    ),
    "qr_dqn": ValueKind(
        lambda make, s: _network(make, QuantileValue(num_quantiles=s.num_quantiles), s),
        lambda rule, _: TDLoss(target_rule=rule, distribution_loss=quantile_loss),
    ),
    "iqn": ValueKind(
        lambda make, s: ImplicitQuantileNetwork(
            *make(1),
            num_quantiles=s.num_fractions,
            num_target_quantiles=s.num_target_fractions,
            num_policy_quantiles=s.num_policy_fractions,
            precision=s.precision,
        ),
        lambda rule, _: TDLoss(target_rule=rule, distribution_loss=quantile_loss),
    ),
}
