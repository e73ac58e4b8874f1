"""What is expected after a transition: which network chooses, which rates, and how. B minibatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from jaxtyping import Float
from torch import Tensor

from atari_dqn.agent import rules
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.minibatch import Minibatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What a transition's prediction is moved toward: r + γ z."""

    r_t: Float[Tensor, "B"]
    discount_t: Float[Tensor, "B"]
    z_t: Float[Tensor, "B Z"]
    """What is predicted from the next state on."""


class TargetRule(Protocol):
    """How what comes next is rated by the networks."""

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Backup:
        """Return what each transition's prediction is moved toward."""
        ...


def dqn_target(batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Backup:
    """Let the target network choose and rate. Mnih et al. (2015)."""
    del online
    next_t = target.predict(batch.s_t, rng, use="target")
    z_t = rules.selected(next_t.outputs, next_t.q_values())
    return Backup(r_t=batch.r_t, discount_t=batch.discount_t, z_t=z_t)


def double_dqn_target(batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Backup:
    """Let the online network choose, the target network rate. van Hasselt et al. (2016)."""
    next_t = target.predict(batch.s_t, rng, use="rating")
    z_t = rules.selected(next_t.outputs, online.preferences(batch.s_t, rng))
    return Backup(r_t=batch.r_t, discount_t=batch.discount_t, z_t=z_t)


@dataclass(frozen=True, slots=True, kw_only=True)
class MunchausenTarget:
    """Let the target network's soft policy choose, and add its clipped log-probability to the reward.

    Over n steps the bonus is that of the first. Vieillard et al. (2020), eq. 2; α is `scale`, τ is
    `temperature`, l₀ is `lowest`.
    """

    scale: float
    temperature: float
    lowest: float

    def __call__(self, batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Backup:
        """Return the soft backup."""
        del online
        q_tm1 = target.predict(batch.s_tm1, rng).q_values()
        next_t = target.predict(batch.s_t, rng, use="target")
        bonus = rules.munchausen_bonus(
            rules.scaled_log_policy(q_tm1, self.temperature),
            batch.a_tm1,
            scale=self.scale,
            lowest=self.lowest,
        )
        log_policy_t = rules.scaled_log_policy(next_t.q_values(), self.temperature)
        z_t = rules.soft_value(next_t.outputs, log_policy_t, self.temperature)
        return Backup(r_t=batch.r_t + bonus, discount_t=batch.discount_t, z_t=z_t)
