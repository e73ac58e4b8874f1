"""How far a prediction is from what it should be, for each kind of prediction. B minibatch, Z per action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from jaxtyping import Float, Int64
from torch import Tensor

from atari_dqn.agent import rules
from atari_dqn.agent.distributions import Categorical, Prediction, Quantiles, Value
from atari_dqn.agent.targets import Backup


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is wrong with each transition's prediction."""

    loss: Float[Tensor, "B"]
    """What its gradient is taken of."""
    error: Float[Tensor, "B"]
    """How wrong it was, not below 0, for the replay's priorities."""
    td_error: Float[Tensor, "B"]
    """The target's expected return less the prediction's."""


P_contra = TypeVar("P_contra", bound=Prediction, contravariant=True)


class Loss(Protocol[P_contra]):
    """Judges predictions of one kind."""

    def __call__(self, predicted: P_contra, a_tm1: Int64[Tensor, "B"], backup: Backup) -> Judged:
        """Compare what was predicted of the taken action with its target."""
        ...


class ValueLoss:
    """Huber's or the squared loss of the TD error; |TD error| is the priority. Schaul et al. (2016)."""

    def __init__(self, rule: Callable[[Tensor], Tensor]) -> None:
        self._rule = rule

    def __call__(self, predicted: Value, a_tm1: Int64[Tensor, "B"], backup: Backup) -> Judged:
        """Compare values."""
        target = rules.backed_up(backup.r_t, backup.discount_t, backup.z_t)
        td_error = (target - rules.taken(predicted.outputs, a_tm1)).squeeze(1)
        return Judged(loss=self._rule(td_error), error=td_error.abs(), td_error=td_error)


class CategoricalLoss:
    """The KL divergence of masses on atoms from their target. Bellemare et al. (2017), Algorithm 1.

    The error is a rule of `CATEGORICAL_PRIORITIES`.
    """

    def __init__(self, priority: Callable[[Tensor, Tensor], Tensor]) -> None:
        self._priority = priority

    def __call__(self, predicted: Categorical, a_tm1: Int64[Tensor, "B"], backup: Backup) -> Judged:
        """Compare masses on atoms."""
        atoms = predicted.atoms
        points = rules.backed_up(backup.r_t, backup.discount_t, atoms[None])
        target = rules.projected(points, backup.z_t.softmax(dim=1), atoms)
        logits = rules.taken(predicted.outputs, a_tm1)
        error = self._priority(target, logits.detach())
        td_error = (target - logits.detach().softmax(dim=1)) @ atoms
        loss = rules.kl_divergence(target, logits)
        return Judged(loss=loss, error=error.clamp(min=0.0), td_error=td_error)


def quantile_loss(predicted: Quantiles, a_tm1: Int64[Tensor, "B"], backup: Backup) -> Judged:
    """Compare every quantile with every target; the loss is the priority. Dabney et al. (2018)."""
    target = rules.backed_up(backup.r_t, backup.discount_t, backup.z_t)
    quantiles = rules.taken(predicted.outputs, a_tm1)
    loss = rules.quantile_huber(quantiles, predicted.fractions, target)
    return Judged(loss=loss, error=loss, td_error=target.mean(dim=1) - quantiles.mean(dim=1))


CATEGORICAL_PRIORITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "kl": rules.kl_divergence,
    "cross_entropy": rules.cross_entropy,
}
VALUE_RULES: dict[str, Callable[[Tensor], Tensor]] = {"huber": rules.huber, "mse": rules.mse}
