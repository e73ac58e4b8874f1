"""The kinds of value distribution: for each its network and its loss. Nothing else depends on the kind."""

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
"""Makes a torso, and a head that puts out so many numbers per action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the kinds can be told; each kind uses its own part."""

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
    """One kind: how its network is made, and how the loss of a target rule is."""

    network: Callable[[MakeParts, Settings], QNetwork]
    loss: Callable[[TargetRule, Settings], LossFn]


def huber(target_rule: TargetRule, _: Settings) -> LossFn:
    """Make the loss of Mnih et al. (2015): the TD error clipped to ±1 in the gradient."""
    return TDLoss(target_rule=target_rule, compare=ScalarLoss(rules.huber))


def mse(target_rule: TargetRule, _: Settings) -> LossFn:
    """Make the squared loss."""
    return TDLoss(target_rule=target_rule, compare=ScalarLoss(rules.mse))


def _with(make_parts: MakeParts, value: ValueLayer, settings: Settings) -> QNetwork:
    return QNetwork(*make_parts(value.size), value, precision=settings.precision)


VALUE_KINDS: dict[str, ValueKind] = {
    "scalar": ValueKind(lambda make, of: _with(make, ScalarValue(), of), huber),
    "c51": ValueKind(
        lambda make, of: _with(
            make, CategoricalValue(v_min=of.v_min, v_max=of.v_max, num_atoms=of.num_atoms), of
        ),
        lambda rule, of: TDLoss(
            target_rule=rule, compare=CategoricalLoss(CATEGORICAL_PRIORITIES[of.priority])
        ),
    ),
    "qr_dqn": ValueKind(
        lambda make, of: _with(make, QuantileValue(num_quantiles=of.num_quantiles), of),
        lambda rule, _: TDLoss(target_rule=rule, compare=quantile_loss),
    ),
    "iqn": ValueKind(
        lambda make, of: ImplicitQuantileNetwork(
            *make(1), num_policy_quantiles=of.num_policy_fractions, precision=of.precision
        ),
        lambda rule, of: TDLoss(
            target_rule=rule,
            compare=quantile_loss,
            num_quantiles=of.num_fractions,
            num_target_quantiles=of.num_target_fractions,
        ),
    ),
}
