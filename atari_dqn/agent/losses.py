"""Losses: from a minibatch and two networks to a number for each transition. B minibatch, Z per action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.agent import rules
from atari_dqn.agent.distributions import Categorical, Quantiles, Scalar
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.agent.targets import Bootstrap, TargetRule
from atari_dqn.minibatch import Minibatch

LOSS_METRICS: dict[str, Literal["mean", "max"]] = {
    "loss": "mean",
    "mean_q": "mean",
    "max_q": "max",
    "mean_abs_td_error": "mean",
}
"""Metrics of a loss, a number for each transition, and how a minibatch's are reduced."""
UPDATE_METRICS = (*LOSS_METRICS, "grad_norm", "nonfinite_gradients")
"""All of an update's; `nonfinite_gradients` counts the updates in a row, this one the last, without a finite
gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOutput:
    """What a loss computes of each transition."""

    loss: Float[Tensor, "B"]
    """Weighted by the transitions' importance weights; its gradient is taken."""
    priorities: Float[Tensor, "B"]
    """Not below 0, for the replay; without a gradient, as the metrics are."""
    metrics: Mapping[str, Float[Tensor, "B"]]
    """The names of `LOSS_METRICS`."""


class LossFn(Protocol):
    """Computes the loss of a minibatch, of shape B before it is reduced."""

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng, /) -> LossOutput:
        """Compute the loss."""


class Comparison(NamedTuple):
    """How far a value distribution is from its target."""

    loss: Float[Tensor, "B"]
    priority: Float[Tensor, "B"]
    td_error: Float[Tensor, "B"]
    """The target's expected return less the prediction's."""


Compare = Callable[[Any, Int64[Tensor, "B"], Bootstrap], Comparison]
"""Compares the value distribution of the taken actions with its target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TDLoss:
    """The temporal-difference loss of every agent here: predict, bootstrap, compare."""

    target_rule: TargetRule
    compare: Compare
    num_quantiles: int | None = None
    """N of Dabney et al. (2018b), where quantiles are drawn."""
    num_target_quantiles: int | None = None
    """N′."""

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng, /) -> LossOutput:
        """Compute the loss."""
        with torch.no_grad():
            bootstrap = self.target_rule(batch, online, target, rng, self.num_target_quantiles)
        predicted = online.distribution(batch.s_tm1, rng, num_quantiles=self.num_quantiles)
        error = self.compare(predicted, batch.a_tm1, bootstrap)
        loss = error.loss * batch.weight
        with torch.no_grad():
            q_tm1 = predicted.q_values()
            metrics = {
                "loss": loss.detach(),
                "mean_q": rules.gather_q(q_tm1, batch.a_tm1),
                "max_q": q_tm1.amax(dim=1),
                "mean_abs_td_error": error.td_error.detach().abs(),
            }
        return LossOutput(loss=loss, priorities=error.priority.detach(), metrics=metrics)


@dataclass(frozen=True, slots=True)
class ScalarLoss:
    """Huber's or the squared loss of the TD error; |TD error| is the priority. Schaul et al. (2016)."""

    rule: Callable[[Tensor], Tensor]

    def __call__(self, predicted: Scalar, a_tm1: Int64[Tensor, "B"], bootstrap: Bootstrap) -> Comparison:
        """Compare values."""
        target = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, bootstrap.z_t)
        td_error = (target - rules.gather_q(predicted.outputs, a_tm1)).squeeze(1)
        return Comparison(self.rule(td_error), td_error.abs(), td_error)


@dataclass(frozen=True, slots=True)
class CategoricalLoss:
    """The KL divergence of masses on atoms from their target. Bellemare et al. (2017), Algorithm 1.

    The priority is a rule of `CATEGORICAL_PRIORITIES`.
    """

    priority: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, predicted: Categorical, a_tm1: Int64[Tensor, "B"], bootstrap: Bootstrap) -> Comparison:
        """Compare masses on atoms."""
        atoms = predicted.atoms
        points = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, atoms[None])
        target = rules.categorical_projection(points, bootstrap.z_t.softmax(dim=1), atoms)
        logits = rules.gather_q(predicted.outputs, a_tm1)
        priority = self.priority(target, logits.detach()).clamp(min=0.0)
        td_error = (target - logits.detach().softmax(dim=1)) @ atoms
        return Comparison(rules.kl_divergence(target, logits), priority, td_error)


def quantile_loss(predicted: Quantiles, a_tm1: Int64[Tensor, "B"], bootstrap: Bootstrap) -> Comparison:
    """Compare every quantile with every target; the loss is the priority. Dabney et al. (2018)."""
    target = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, bootstrap.z_t)
    quantiles = rules.gather_q(predicted.outputs, a_tm1)
    loss = rules.quantile_huber(quantiles, predicted.fractions, target)
    return Comparison(loss, loss, target.mean(dim=1) - quantiles.mean(dim=1))


CATEGORICAL_PRIORITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "kl": rules.kl_divergence,
    "cross_entropy": rules.cross_entropy,
}
