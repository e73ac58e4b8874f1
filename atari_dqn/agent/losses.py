"""Losses: one value for each transition of a minibatch. B minibatch, A actions, Z outputs per action."""

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
"""The metrics of a loss, one value per transition, and their reduction over the minibatch."""
UPDATE_METRICS = (*LOSS_METRICS, "grad_norm", "nonfinite_gradients")
"""All metrics of an update. `nonfinite_gradients` is the number of consecutive updates, up to and including
this one, whose gradient was not finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOutput:
    """The loss, priority and metrics of each transition."""

    loss: Float[Tensor, "B"]
    """Multiplied by the importance weights. Only this field has a gradient."""
    priorities: Float[Tensor, "B"]
    """New priorities for the replay buffer, not below 0."""
    metrics: Mapping[str, Float[Tensor, "B"]]
    """Metrics by name; the names are those of `LOSS_METRICS`."""


class LossFn(Protocol):
    """Computes the loss of each sample of a minibatch: of transitions, or of sequences."""

    def __call__(self, batch: Any, online: QNetwork, target: QNetwork, rng: Rng, /) -> LossOutput:
        """Compute the loss."""


class LossTerms(NamedTuple):
    """Each transition's loss without the importance weight, its priority and its TD error."""

    loss: Float[Tensor, "B"]
    priority: Float[Tensor, "B"]
    td_error: Float[Tensor, "B"]
    """Expected return of the target minus expected return of the prediction."""


DistributionLossFn = Callable[[Any, Int64[Tensor, "B"], Bootstrap], LossTerms]
"""Computes the loss of the selected actions' value distributions against their targets."""
Divergence = Callable[[Tensor, Tensor], Tensor]
"""Computes a value per transition from target masses, f32[B, Z], and logits, f32[B, Z]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TDLoss:
    """The temporal-difference loss, for any target rule and any kind of value distribution."""

    target_rule: TargetRule
    distribution_loss: DistributionLossFn

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng, /) -> LossOutput:
        """Compute the loss."""
        with torch.no_grad():
            bootstrap = self.target_rule(batch, online, target, rng)
        predicted = online.predicted_distribution(batch.s_tm1, rng)
        terms = self.distribution_loss(predicted, batch.a_tm1, bootstrap)
        loss = terms.loss * batch.weight
        with torch.no_grad():
            q_tm1 = predicted.q_values()
            metrics = {
                "loss": loss.detach(),
                "mean_q": rules.gather_q(q_tm1, batch.a_tm1),
                "max_q": q_tm1.amax(dim=1),
                "mean_abs_td_error": terms.td_error.detach().abs(),
            }
        return LossOutput(loss=loss, priorities=terms.priority.detach(), metrics=metrics)


@dataclass(frozen=True, slots=True)
class ScalarLoss:
    """Huber or squared loss of the TD error; the priority is |TD error|. Schaul et al. (2016)."""

    rule: Callable[[Tensor], Tensor]

    def __call__(self, predicted: Scalar, a_tm1: Int64[Tensor, "B"], bootstrap: Bootstrap) -> LossTerms:
        """Compute the loss of q-values."""
        target = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, bootstrap.z_t)
        td_error = (target - rules.gather_q(predicted.outputs, a_tm1)).squeeze(1)
        return LossTerms(self.rule(td_error), td_error.abs(), td_error)


@dataclass(frozen=True, slots=True)
class CategoricalLoss:
    """KL divergence from the projected target to the prediction. Bellemare et al. (2017), Algorithm 1."""

    priority: Divergence
    """One of `CATEGORICAL_PRIORITIES`."""

    def __call__(self, predicted: Categorical, a_tm1: Int64[Tensor, "B"], bootstrap: Bootstrap) -> LossTerms:
        """Compute the loss of masses on atoms."""
        atoms = predicted.atoms
        points = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, atoms[None])
        target = rules.categorical_projection(points, bootstrap.z_t.softmax(dim=1), atoms)
        return categorical_terms(target, predicted, a_tm1, rules.kl_divergence, self.priority)


def categorical_terms(
    target: Float[Tensor, "B Z"],
    predicted: Categorical,
    a_tm1: Int64[Tensor, "B"],
    divergence: Divergence,
    priority: Divergence,
) -> LossTerms:
    """Compute the divergence of the predicted masses on atoms from target masses, and the other terms."""
    logits = rules.gather_q(predicted.outputs, a_tm1)
    detached = logits.detach()
    td_error = (target - detached.softmax(dim=1)) @ predicted.atoms
    return LossTerms(divergence(target, logits), priority(target, detached).clamp(min=0.0), td_error)


def quantile_loss(predicted: Quantiles, a_tm1: Int64[Tensor, "B"], bootstrap: Bootstrap) -> LossTerms:
    """Compute the quantile Huber loss, which is also the priority. Dabney et al. (2018)."""
    target = rules.bellman_target(bootstrap.r_t, bootstrap.discount_t, bootstrap.z_t)
    quantiles = rules.gather_q(predicted.outputs, a_tm1)
    loss = rules.quantile_huber(quantiles, predicted.fractions, target)
    return LossTerms(loss, loss, target.mean(dim=1) - quantiles.mean(dim=1))


CATEGORICAL_PRIORITIES: dict[str, Divergence] = {
    "kl": rules.kl_divergence,
    "cross_entropy": rules.cross_entropy,
}
