"""The loss of sequences. Hausknecht & Stone (2015); Kapturowski et al. (2019), section 2.3.

B sequences, T steps, K = T + 1 frames, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from atari_dqn.agent.losses import LossOutput
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.agent.unroll import Unroll
from atari_dqn.minibatch import SequenceBatch

RESCALING_EPSILON = 1e-3
"""ε of `rescaled`. Kapturowski et al. (2019), Table 2."""
Scale = Callable[[Tensor], Tensor]
"""A function of each value by itself."""


def rescaled(x: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Compute h(x) = sign(x)(√(|x| + 1) − 1) + εx. Pohlen et al. (2018)."""
    return x.sign() * ((x.abs() + 1).sqrt() - 1) + RESCALING_EPSILON * x


def unrescaled(y: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Compute h⁻¹(y) = sign(y)(((√(1 + 4ε(|y| + 1 + ε)) − 1) / 2ε)² − 1).

    Pohlen et al. (2018), Proposition A.2. To avoid cancellation, (√(1 + u) − 1) / 2ε is computed as
    u / (2ε(√(1 + u) + 1)).
    """
    shifted = y.abs() + 1 + RESCALING_EPSILON
    root = 2 * shifted / ((1 + 4 * RESCALING_EPSILON * shifted).sqrt() + 1)
    return y.sign() * (root.square() - 1)


def unchanged(x: Tensor) -> Tensor:
    """Return the values as they are."""
    return x


def mixed_priority(
    td_error: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"], mix: float
) -> Float[Tensor, "B"]:
    """Compute η max |δ| + (1 − η) mean |δ| over the steps of each sequence. Kapturowski et al. (2019)."""
    error = td_error.abs().masked_fill(~mask, 0.0)
    return mix * error.amax(dim=1) + (1 - mix) * error.sum(dim=1) / mask.sum(dim=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceTDLoss:
    """The n-step TD loss of each sequence, a sum or a mean over its steps.

    The target is h(r + γⁿ h⁻¹(q)), with h the identity unless values are rescaled. Both networks are unrolled
    over the same frames from the same state.
    """

    unroll: Unroll
    is_double: bool
    rule: Callable[[Tensor], Tensor]
    """The loss of a TD error."""
    is_mean: bool
    """Whether the loss of a sequence is the mean over its steps, otherwise the sum."""
    priority_mix: float
    """η; it has no effect under uniform sampling."""
    h: Scale
    """The rescaling of values."""
    h_inverse: Scale

    def __call__(self, batch: SequenceBatch, online: QNetwork, target: QNetwork, rng: Rng, /) -> LossOutput:
        """Compute the loss; `rng` is not used, because no network with noise learns from sequences."""
        del rng
        q, td_error = self.td_errors(batch, online, target)
        step_loss, steps = self.rule(td_error).masked_fill(~batch.mask, 0.0), batch.mask.sum(dim=1)
        loss = batch.weight * step_loss.sum(dim=1) / (steps if self.is_mean else 1)
        with torch.no_grad():
            metrics = {
                "loss": loss.detach(),
                "mean_q": _selected(q[:, :-1], batch.a_tm1).masked_fill(~batch.mask, 0.0).sum(dim=1) / steps,
                "max_q": q[:, :-1].amax(dim=2).masked_fill(~batch.mask, -torch.inf).amax(dim=1),
                "mean_abs_td_error": mixed_priority(td_error, batch.mask, 0.0),
            }
            priorities = mixed_priority(td_error, batch.mask, self.priority_mix)
        return LossOutput(loss=loss, priorities=priorities, metrics=metrics)

    def td_errors(
        self, batch: SequenceBatch, online: QNetwork, target: QNetwork
    ) -> tuple[Float[Tensor, "B K A"], Float[Tensor, "B T"]]:
        """Compute the q-values of each frame, and the TD error of each step."""
        q = self.unroll.q_values(online, batch)
        return q, self._target(batch, q.detach(), target) - _selected(q[:, :-1], batch.a_tm1)

    @torch.no_grad()
    def _target(
        self, batch: SequenceBatch, q: Float[Tensor, "B K A"], target: QNetwork
    ) -> Float[Tensor, "B T"]:
        """Compute h(r + γⁿ h⁻¹(q′)), with q′ the target network's value of the best action n steps later."""
        q_target = self.unroll.q_values(target, batch)
        v = _selected(q_target, (q if self.is_double else q_target).argmax(dim=2))
        return self.h(batch.r_t + batch.discount_t * self.h_inverse(v).gather(1, batch.end_t))


def _selected(q: Float[Tensor, "B T A"], action: Tensor) -> Float[Tensor, "B T"]:
    return q.gather(2, action[..., None]).squeeze(2)
