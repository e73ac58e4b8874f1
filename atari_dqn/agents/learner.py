"""The learner: one minibatch in, one gradient step, metrics out as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

from atari_dqn import learning
from atari_dqn.agents.networks import QNetwork
from atari_dqn.agents.optimizers import step_if
from atari_dqn.minibatch import Minibatch
from atari_dqn.types import StateDict

UpdateMetrics = Mapping[str, Tensor]
"""Scalars of one update, still on their device: loss, mean_q, max_q, mean_abs_td_error, grad_norm, and
nonfinite_gradients, the number of updates in a row, up to this one, that had no finite gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one gradient step found."""

    metrics: UpdateMetrics
    abs_td_error: Float[Tensor, "B"]
    """|target − value| of each transition, for the replay; 0 where that is no finite number."""


class TargetRule(Protocol):
    """How a transition's target value comes from the networks."""

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork) -> Float[Tensor, "B"]:
        """Return the target of each transition's taken action."""
        ...


def dqn_target(batch: Minibatch, online: QNetwork, target: QNetwork) -> Float[Tensor, "B"]:
    """Let the target network choose and rate. Mnih et al. (2015)."""
    del online
    return learning.q_target(batch.r_t, batch.discount_t, target(batch.s_t))


def double_dqn_target(batch: Minibatch, online: QNetwork, target: QNetwork) -> Float[Tensor, "B"]:
    """Let the online network choose, the target network rate. van Hasselt et al. (2016)."""
    return learning.double_q_target(batch.r_t, batch.discount_t, target(batch.s_t), online(batch.s_t))


LOSSES: dict[str, Callable[[Tensor], Tensor]] = {"huber": learning.huber, "mse": learning.mse}
REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"sum": torch.sum, "mean": torch.mean}


class Learner:
    """Holds the online and the target network and moves the one toward the other's targets.

    A minibatch may be taken in `accumulate` equal parts, whose gradients add up to that of the whole.
    A gradient that is not finite changes neither weights nor optimizer. Its update counts all the same, so
    that copies to the target network stay in step.
    """

    def __init__(
        self,
        *,
        online: QNetwork,
        target: QNetwork,
        optimizer: Optimizer,
        target_rule: TargetRule,
        loss: str,
        reduction: str,
        accumulate: int,
        max_grad_norm: float,
        target_period_updates: int,
    ) -> None:
        self.online, self.target, self.optimizer = online, target, optimizer
        self._target_rule, self._loss, self._reduce = target_rule, LOSSES[loss], REDUCTIONS[reduction]
        self._max_grad_norm = max_grad_norm
        self._target_period_updates = target_period_updates
        self.updates = 0
        device = next(online.parameters()).device
        self._accumulate = accumulate
        self._part_share = torch.tensor(1.0 if reduction == "sum" else 1.0 / accumulate, device=device)
        self._nonfinite_gradients = torch.zeros((), device=device)
        target.requires_grad_(False)
        self.sync_target()

    def sync_target(self) -> None:
        """Copy the online network to the target network."""
        self.target.load_state_dict(self.online.state_dict())

    def update(self, batch: Minibatch) -> Update:
        """Take one gradient step, and copy the networks when the target's period is over."""
        columns = zip(*map(self._add_gradients, batch.split(self._accumulate)), strict=True)
        q_tm1, td_error, losses = (torch.cat(column) for column in columns)
        grad_norm = self._clip_gradients()
        self._step(grad_norm)
        abs_td_error = td_error.abs()
        metrics = {
            "loss": losses.mean(),
            "mean_q": learning.taken(q_tm1, batch.a_tm1).mean(),
            "max_q": q_tm1.max(),
            "mean_abs_td_error": abs_td_error.mean(),
            "grad_norm": grad_norm,
            "nonfinite_gradients": self._nonfinite_gradients,
        }
        return Update(metrics=metrics, abs_td_error=abs_td_error.nan_to_num(nan=0.0, posinf=0.0))

    def _add_gradients(
        self, part: Minibatch
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B"], Float[Tensor, "B"]]:
        """Add a part's gradients to those there are; return its action values, TD errors and losses."""
        with torch.no_grad():
            target_value = self._target_rule(part, self.online, self.target)
        q_tm1 = self.online(part.s_tm1)
        td_error = target_value - learning.taken(q_tm1, part.a_tm1)
        losses = self._loss(td_error) * part.weight
        self._reduce(losses).backward(self._part_share)  # type: ignore[no-untyped-call]
        return q_tm1.detach(), td_error.detach(), losses.detach()

    def _step(self, grad_norm: Float[Tensor, ""]) -> None:
        """Move the weights by their gradients if those are finite; count the update in any case."""
        finite = grad_norm < torch.inf  # which NaN is not
        self._nonfinite_gradients = (self._nonfinite_gradients + 1) * ~finite
        step_if(self.optimizer, finite)
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1
        if self.updates % self._target_period_updates == 0:
            self.sync_target()

    def _clip_gradients(self) -> Float[Tensor, ""]:
        """Scale the gradients to the largest norm allowed; return the norm they had."""
        gradients = [weight.grad for weight in self.online.parameters() if weight.grad is not None]
        norm = nn.utils.get_total_norm(gradients, foreach=True)
        if math.isfinite(self._max_grad_norm):
            nn.utils.clip_grads_with_norm_(self.online.parameters(), self._max_grad_norm, norm, foreach=True)
        return norm

    def state_dict(self) -> StateDict:
        """Return both networks, the optimizer and the counts."""
        return {
            "online": dict(self.online.state_dict()),
            "target": dict(self.target.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "updates": self.updates,
            "nonfinite_gradients": self._nonfinite_gradients.clone(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over networks and optimizer, strictly; a mismatch names the keys."""
        self.online.load_state_dict(state["online"])
        self.target.load_state_dict(state["target"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.updates = state["updates"]
        self._nonfinite_gradients = torch.as_tensor(
            state["nonfinite_gradients"], device=self._nonfinite_gradients.device
        )
