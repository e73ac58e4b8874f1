"""λ-returns of q-values, and the target that is such a return. Gallici et al. (2025), Algorithm 1.

The paper is "Simplifying deep temporal difference learning"; the returns are those of Q(λ), Peng & Williams
(1996). T successive steps of E environments, T1 = T + 1 frames. B minibatch.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.random_draws import Rng
from atari_dqn.agent.targets import Bootstrap
from atari_dqn.minibatch import Minibatch


def lambda_returns(
    r_t: Float[Tensor, "T E"],
    discount_t: Float[Tensor, "T E"],
    is_step: Bool[Tensor, "T E"],
    max_q: Float[Tensor, "T1 E"],
    trace_decay: float,
) -> Float[Tensor, "T E"]:
    """Compute G = r + γ ((1 − λ) q′ + λ G′) of every step, from the last one back.

    `max_q[t]` is the largest q-value of frame t, and q′ that of frame t + 1. G′ is the return of the next
    step, or q′ where there is none: after the last row, and before the last frame of an episode, whose row
    has `is_step` false. The result of such a row is `max_q[t]`; its weight in the loss is 0.
    """
    returns, g = torch.empty_like(r_t), max_q[-1]
    for t in reversed(range(len(r_t))):
        mixed = (1 - trace_decay) * max_q[t + 1] + trace_decay * g
        g = torch.where(is_step[t], r_t[t] + discount_t[t] * mixed, max_q[t])
        returns[t] = g
    return returns


def lambda_return_target(batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Bootstrap:
    """Take the λ-return of each step, which `r_t` holds, as target; nothing is bootstrapped."""
    del online, target, rng
    return Bootstrap(r_t=batch.r_t, discount_t=batch.discount_t, z_t=torch.zeros_like(batch.r_t)[:, None])
