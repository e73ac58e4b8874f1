"""Target rules: the network that selects the next action, and the one that evaluates it. B minibatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from jaxtyping import Float
from torch import Tensor

from atari_dqn.agent import rules
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.minibatch import Minibatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """The terms of the target r + γ z."""

    r_t: Float[Tensor, "B"]
    discount_t: Float[Tensor, "B"]
    z_t: Float[Tensor, "B Z"]
    """The outputs of the selected next action, or their expectation under the policy."""


class TargetRule(Protocol):
    """Computes the bootstrap terms of a minibatch."""

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng, /) -> Bootstrap:
        """Compute the terms of each transition's target."""


def dqn_target(batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Bootstrap:
    """Select and evaluate with the target network. Mnih et al. (2015), Algorithm 1."""
    del online
    next_t, q_t = target.target_distribution_and_q_values(batch.s_t, rng)
    z_t = rules.gather_q(next_t.outputs, q_t.argmax(dim=1))
    return Bootstrap(r_t=batch.r_t, discount_t=batch.discount_t, z_t=z_t)


def double_dqn_target(batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Bootstrap:
    """Select with the online network, evaluate with the target one. van Hasselt et al. (2016), eq. 4."""
    next_t = target.target_distribution(batch.s_t, rng)
    z_t = rules.gather_q(next_t.outputs, online.q_values(batch.s_t, rng).argmax(dim=1))
    return Bootstrap(r_t=batch.r_t, discount_t=batch.discount_t, z_t=z_t)


@dataclass(frozen=True, slots=True, kw_only=True)
class MunchausenTarget:
    """Soft value under the target network's softmax policy, plus its clipped log-probability.

    With n-step returns the bonus is that of the first step. Vieillard et al. (2020), eq. 2; α is `scale`, τ
    is `temperature` and l₀ is `lowest`. The log-probability is that of the target network, as in the paper,
    or of the online one (`bonus_of`).
    """

    scale: float
    temperature: float
    lowest: float
    bonus_of: Literal["target", "online"] = "target"

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Bootstrap:
        """Compute the terms of each transition's soft target."""
        q_tm1 = (online if self.bonus_of == "online" else target).q_values(batch.s_tm1, rng)
        next_t, q_t = target.target_distribution_and_q_values(batch.s_t, rng)
        bonus = rules.munchausen_bonus(
            rules.scaled_log_policy(q_tm1, self.temperature),
            batch.a_tm1,
            scale=self.scale,
            lowest=self.lowest,
        )
        log_policy_t = rules.scaled_log_policy(q_t, self.temperature)
        z_t = rules.soft_value(next_t.outputs, log_policy_t, self.temperature)
        return Bootstrap(r_t=batch.r_t + bonus, discount_t=batch.discount_t, z_t=z_t)
