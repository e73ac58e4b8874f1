"""The learner: one minibatch in, one gradient step, metrics out as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

from atari_dqn.agent import rules
from atari_dqn.agent.augmentation import Augment, unchanged
from atari_dqn.agent.compiled import Compiled
from atari_dqn.agent.fused_step import gradient_norm
from atari_dqn.agent.losses import Judged, Loss
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.optimizers import factored_of, load_optimizer, moved_by, step_if_on
from atari_dqn.agent.random_draws import Rng
from atari_dqn.agent.targets import TargetRule
from atari_dqn.minibatch import Minibatch
from atari_dqn.rng import restore_generator
from atari_dqn.types import StateDict

UpdateMetrics = Mapping[str, Tensor]
"""Scalars of one update, still on their device: loss, mean_q, max_q, mean_abs_td_error, grad_norm, and
nonfinite_gradients, the number of updates in a row, up to this one, that had no finite gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one gradient step found."""

    metrics: UpdateMetrics
    error: Float[Tensor, "B"]
    """How wrong each transition's prediction was, for the replay."""


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


_CLIP_EPSILON = 1e-6
"""What PyTorch adds to the norm that it divides by."""
REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"sum": torch.sum, "mean": torch.mean}


class Learner:
    """Holds the online and the target network and moves the one toward the other's targets.

    They may be one and the same network, if it would be copied after every update.

    A minibatch may be taken in `accumulate` equal parts, whose gradients add up to that of the whole.
    A gradient that is not finite changes neither weights nor optimizer. Its update counts all the same, so
    that copies to the target network stay in step.

    Noise, fractions and shifts come from `generator`, on the networks' device; each part of a minibatch draws
    its own, when its turn comes.
    """

    def __init__(
        self,
        *,
        online: QNetwork,
        target: QNetwork,
        optimizer: Optimizer,
        target_rule: TargetRule,
        loss: Loss[Any],
        reduction: str,
        accumulate: int,
        max_grad_norm: float,
        target_period_updates: int,
        generator: torch.Generator,
        augment: Augment = unchanged,
        compiled: bool = False,
    ) -> None:
        self.online, self.target, self.optimizer = online, target, optimizer
        self._weights = list(online.parameters())
        self._target_rule, self._loss, self._reduce = target_rule, loss, REDUCTIONS[reduction]
        self._max_grad_norm = max_grad_norm
        self._target_period_updates = target_period_updates
        self.updates = 0
        self._generator, self._augment = generator, augment
        device = self._weights[0].device
        self._accumulate, self._compiled = accumulate, compiled
        self._judge = Compiled(self._judge_part) if compiled else self._judge_part
        self._step_if = step_if_on(device, optimizer)
        self._may_look = device.type == "cpu"
        may_be_factored = self._may_look and accumulate == 1 and not compiled
        self._factored = factored_of(optimizer, self._weights) if may_be_factored else None
        self._part_share = torch.tensor(1.0 if reduction == "sum" else 1.0 / accumulate, device=device)
        self._nonfinite_gradients = torch.zeros((), device=device)
        self._is_one_network = target is online
        assert not self._is_one_network or target_period_updates == 1
        if not self._is_one_network:
            target.requires_grad_(False)
        self.sync_target()

    def sync_target(self) -> None:
        """Copy the online network to the target network."""
        if not self._is_one_network:
            self.target.load_state_dict(self.online.state_dict())

    def update(self, batch: Minibatch) -> Update:
        """Take one gradient step, and copy the networks when the target's period is over."""
        update = self.learn(batch)
        self.made(1)
        return update

    def learn(self, batch: Minibatch) -> Update:
        """Take one gradient step: work of the device, which no number of the host's changes."""
        try:
            columns = zip(*map(self._add_gradients, self._parts(batch)), strict=True)
            q_tm1, td_error, error, losses = map(_joined, columns)
            grad_norm = self._clip_gradients()
            self._step(grad_norm)
        finally:
            self._forget_gradients()  # or one that was broken off would be part of the next
        metrics = {
            "loss": losses.mean(),
            "mean_q": rules.taken(q_tm1, batch.a_tm1).mean(),
            "max_q": q_tm1.max(),
            "mean_abs_td_error": td_error.abs().mean(),
            "grad_norm": grad_norm,
            "nonfinite_gradients": self._nonfinite_gradients.clone(),
        }
        return Update(metrics=metrics, error=error)

    def try_out(self, batch: Minibatch) -> None:
        """Do what an update does before it moves a weight: what is to be compiled is compiled then."""
        list(map(self._add_gradients, self._parts(batch)))  # a loop would hold each part a turn longer
        self._forget_gradients()

    @property
    def generator(self) -> torch.Generator:
        """The stream of noise, fractions and shifts."""
        return self._generator

    @property
    def updates_to_copy(self) -> int:
        """How many updates there are until the networks are copied, the one before the copy included."""
        return self._target_period_updates - self.updates % self._target_period_updates

    def made(self, updates: int) -> None:
        """Count gradient steps, no more than `updates_to_copy`; copy the networks if their period is over."""
        assert updates <= self.updates_to_copy
        self.updates += updates
        if self.updates % self._target_period_updates == 0:
            self.sync_target()

    def written(self) -> list[Tensor]:
        """Return the tensors that `learn` changes; an optimizer's are there after its first step."""
        return [*moved_by(self.optimizer), self._nonfinite_gradients]

    def _parts(self, batch: Minibatch) -> Iterator[Minibatch]:
        """Return the parts of a minibatch one after the other, each made ready when its turn comes."""
        return map(self._made_ready, batch.split(self._accumulate))

    def _made_ready(self, part: Minibatch) -> Minibatch:
        """Return a part as it is learned from: its stacks changed, and in the network's order in memory."""
        part = self._augment(part, self._generator)
        arrange = partial(self.online.arrange, compiled=self._compiled)
        return replace(part, s_tm1=arrange(part.s_tm1), s_t=arrange(part.s_t))

    def _add_gradients(
        self, part: Minibatch
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B"], Float[Tensor, "B"], Float[Tensor, "B"]]:
        """Add a part's gradients to those there are; return action values, TD errors, errors and losses."""
        total, q_tm1, td_error, error, losses = self._judge(self._generator, part)
        total.backward(self._part_share)
        return q_tm1, td_error, error, losses

    def _judge_part(
        self, rng: Rng, part: Minibatch
    ) -> tuple[
        Float[Tensor, ""], Float[Tensor, "B A"], Float[Tensor, "B"], Float[Tensor, "B"], Float[Tensor, "B"]
    ]:
        """Return a part's loss, and without gradients its action values, TD errors, errors and losses.

        A function of the networks' weights, the part and random numbers: this is what may be compiled.
        """
        with torch.no_grad():
            backup = self._target_rule(part, self.online, self.target, rng)
        predicted = self.online.predict(part.s_tm1, rng, use="loss", factored=self._factored)
        judged: Judged = self._loss(predicted, part.a_tm1, backup)
        losses = judged.loss * part.weight
        with torch.no_grad():
            q_tm1 = predicted.q_values()
        found = (q_tm1.detach(), judged.td_error.detach(), judged.error.detach(), losses.detach())
        return self._reduce(losses), *found

    def _step(self, grad_norm: Float[Tensor, ""]) -> None:
        """Move the weights by their gradients if those are finite."""
        finite = grad_norm < torch.inf  # which NaN is not
        self._nonfinite_gradients.add_(1).masked_fill_(finite, 0.0)
        self._step_if(self.optimizer, finite)

    def _forget_gradients(self) -> None:
        for weight in self._weights:
            weight.grad = None
        if self._factored is not None:
            self._factored.clear()

    def _clip_gradients(self) -> Float[Tensor, ""]:
        """Scale the gradients to the largest norm allowed; return the norm they had."""
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        factored = self._factored or []
        norm = gradient_norm(gradients, factored)
        if math.isfinite(self._max_grad_norm) and not self._is_within(norm):
            nn.utils.clip_grads_with_norm_(self._weights, self._max_grad_norm, norm, foreach=True)
            for place, gradient in enumerate(factored):
                scale = (self._max_grad_norm / (norm + _CLIP_EPSILON)).clamp(max=1.0)  # as PyTorch's
                factored[place] = replace(gradient, scale=scale.item())
        return norm

    def _is_within(self, norm: Float[Tensor, ""]) -> bool:
        """Return whether clipping would multiply by 1, where the host need not wait to know."""
        return self._may_look and self._max_grad_norm >= norm.item() + _CLIP_EPSILON

    def state_dict(self) -> StateDict:
        """Return both networks, the optimizer, the counts and the random stream."""
        return {
            "online": dict(self.online.state_dict()),
            "target": dict(self.target.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "updates": self.updates,
            "nonfinite_gradients": self._nonfinite_gradients.clone(),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over networks and optimizer, strictly; a mismatch names the keys."""
        self.online.load_state_dict(state["online"])
        if not self._is_one_network:
            self.target.load_state_dict(state["target"])
        load_optimizer(self.optimizer, state["optimizer"])
        self.updates = state["updates"]
        self._nonfinite_gradients.copy_(torch.as_tensor(state["nonfinite_gradients"]))
        restore_generator(self._generator, state["generator"])
