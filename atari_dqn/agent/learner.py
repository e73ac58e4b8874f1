"""The learner: one gradient step per minibatch, and the target network. Mnih et al. (2015), Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

from atari_dqn.agent.augmentation import Augment, not_augmented
from atari_dqn.agent.losses import LOSS_METRICS, LossFn, LossOutput
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.optimizer_state import averages_of, load_optimizer
from atari_dqn.agent.upkeep import Upkeep
from atari_dqn.minibatch import Batch
from atari_dqn.rng import restore_generator
from atari_dqn.types import StateDict

_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The metrics and priorities that a gradient step computes."""

    metrics: Mapping[str, Tensor]
    """The scalars named in `losses.UPDATE_METRICS`, on the learner's device."""
    priorities: Float[Tensor, "B"]
    """The new priorities of the transitions, not below 0."""


class Learner:
    """Trains the online network toward targets of the target network.

    A minibatch may be split into `accumulate` equal parts, whose gradients sum to that of the whole, except
    that each part has its own random draws. If the gradient is not finite, the step changes neither weights
    nor optimizer; it still counts as an update, so that the target network is copied at the same steps.

    If the target network would be copied after every update, both may be the same object. `after_step` is
    called after each step of the optimizer, and may change buffers of the online network. Noise, quantile
    fractions and shifts are drawn from `generator`, on the networks' device, part by part.
    """

    def __init__(
        self,
        *,
        online: QNetwork,
        target: QNetwork,
        optimizer: Optimizer,
        loss: LossFn,
        reduction: str,
        accumulate: int,
        max_grad_norm: float,
        target_period_updates: int,
        generator: torch.Generator,
        augment: Augment = not_augmented,
        target_rate: float = 1.0,
        upkeep: Sequence[Upkeep] = (),
        after_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.online, self.target, self.optimizer, self.loss = online, target, optimizer, loss
        self.generator, self._augment, self._after_step = generator, augment, after_step
        self._accumulate, self._reduction = accumulate, reduction
        self._max_grad_norm, self._target_period_updates = max_grad_norm, target_period_updates
        self._target_rate, self.upkeep = target_rate, list(upkeep)
        self._weights = list(online.parameters())
        self._nonfinite_gradients = torch.zeros((), device=generator.device)
        self.updates = 0
        assert target is not online or target_period_updates == target_rate == 1
        if target is not online:
            target.requires_grad_(False)
        self.copy_to_target()

    def update(self, batch: Batch) -> Update:
        """Learn from one minibatch of transitions (φⱼ, aⱼ, rⱼ, φⱼ₊₁). Mnih et al. (2015), Algorithm 1."""
        update = self.gradient_step(batch)
        self.count_updates(1)
        return update

    def gradient_step(self, batch: Batch) -> Update:
        """Take one gradient step; it depends on no counter of the host."""
        try:
            # "Set yⱼ = rⱼ if episode terminates at step j + 1, otherwise rⱼ + γ maxₐ′ Q̂(φⱼ₊₁, a′; θ⁻)"
            outputs = [self._backward(part) for part in batch.split(self._accumulate)]
            # "Perform a gradient descent step on (yⱼ − Q(φⱼ, aⱼ; θ))² with respect to the … parameters θ"
            grad_norm = self._clip_gradients()
            finite = grad_norm < torch.inf  # false for NaN
            self._nonfinite_gradients.add_(1).masked_fill_(finite, 0.0)
            self._step_if(finite)
            self._after_step()
        finally:
            self.online.zero_grad()  # after an exception too: nothing may leak into the next step
        metrics = {name: _reduced(name, outputs) for name in LOSS_METRICS}
        metrics |= {"grad_norm": grad_norm, "nonfinite_gradients": self._nonfinite_gradients.clone()}
        return Update(metrics=metrics, priorities=_joined([output.priorities for output in outputs]))

    def count_updates(self, updates: int) -> None:
        """Count gradient steps, at most `updates_before_work`, and do the work that is due after them."""
        assert updates <= self.updates_before_work
        self.updates += updates
        # "Every C steps reset Q̂ = Q"
        if self.updates % self._target_period_updates == 0:
            self.move_target()
        for work in self.upkeep:
            work.after(self.updates)

    def copy_to_target(self) -> None:
        """Copy the online network to the target network."""
        if self.target is not self.online:
            self.target.load_state_dict(self.online.state_dict())

    def move_target(self) -> None:
        """Move the target network towards the online one: θ⁻ ← θ⁻ + τ (θ − θ⁻), a copy if τ = 1."""
        if self._target_rate == 1.0:
            self.copy_to_target()
        else:
            move_towards(self.target, self.online, self._target_rate)

    @property
    def updates_before_work(self) -> int:
        """Number of updates that are made before the target network moves, or upkeep is due; at least 1."""
        to_copy = self._target_period_updates - self.updates % self._target_period_updates
        return min([to_copy, *(work.updates_until(self.updates) for work in self.upkeep)])

    def mutated_tensors(self) -> list[Tensor]:
        """List the tensors that `gradient_step` changes; some optimizers create theirs in the first step."""
        averages = averages_of(self.optimizer)
        return [*self._weights, *averages, *self.online.buffers(), self._nonfinite_gradients]

    def _backward(self, part: Batch) -> LossOutput:
        """Add the gradients of a part of a minibatch to `.grad`."""
        output = self.loss(self._augment(part, self.generator), self.online, self.target, self.generator)
        self._add_gradients(self._reduced_loss(output))
        return output

    def _add_gradients(self, loss: Float[Tensor, ""]) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def _reduced_loss(self, output: LossOutput) -> Float[Tensor, ""]:
        """Reduce the loss of a part to its contribution to the loss of the minibatch."""
        total = _REDUCTIONS[self._reduction](output.loss)
        return total if self._reduction == "sum" else total / self._accumulate

    def _clip_gradients(self) -> Float[Tensor, ""]:
        """Clip the gradients to the largest norm; return the norm before clipping."""
        return nn.utils.clip_grad_norm_(self._weights, self._max_grad_norm, foreach=True)

    def _step_if(self, finite: Tensor) -> None:
        """Step the optimizer, unless the gradient is not finite."""
        if finite:
            self.optimizer.step()

    def state_dict(self) -> StateDict:
        """Collect both networks, the optimizer, the counters and the random state."""
        return {
            "online": dict(self.online.state_dict()),
            "target": dict(self.target.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "updates": self.updates,
            "nonfinite_gradients": self._nonfinite_gradients.clone(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Load both networks, the optimizer, the counters and the random state; keys must match exactly."""
        self.online.load_state_dict(state["online"])
        if self.target is not self.online:
            self.target.load_state_dict(state["target"])
        load_optimizer(self.optimizer, state["optimizer"])
        self.updates = state["updates"]
        self._nonfinite_gradients.copy_(torch.as_tensor(state["nonfinite_gradients"]))
        restore_generator(self.generator, state["generator"])


@torch.no_grad()
def move_towards(target: nn.Module, online: nn.Module, rate: float) -> None:
    """Move every parameter of the target network: θ⁻ ← θ⁻ + τ (θ − θ⁻). Lillicrap et al. (2016)."""
    torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), rate)


def _reduced(name: str, outputs: Sequence[LossOutput]) -> Float[Tensor, ""]:
    """Reduce a metric over the minibatch as `LOSS_METRICS` declares."""
    return _REDUCTIONS[LOSS_METRICS[name]](_joined([output.metrics[name] for output in outputs]))


def _joined(parts: Sequence[Tensor]) -> Float[Tensor, "B"]:
    return (parts[0] if len(parts) == 1 else torch.cat(list(parts))).float()  # a loss may compute in float64
