"""λ-returns of q-values, and the target that is such a return. Gallici et al. (2025), Algorithm 1.

The paper is "Simplifying deep temporal difference learning"; the returns are those of Q(λ), Peng & Williams
(1996). T steps of E environments, one after the other. B minibatch.
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

    `max_q` are the largest q-values of the T + 1 frames, q′ that of the next frame. G′ is the next step's
    return, or q′ where there is no next step: after the last step, and at the last frame of an episode, whose
    row is not a step.
    """
    returns, g = torch.empty_like(r_t), max_q[-1]
    for t in reversed(range(len(r_t))):
        mixed = (1 - trace_decay) * max_q[t + 1] + trace_decay * g
        g = torch.where(is_step[t], r_t[t] + discount_t[t] * mixed, max_q[t])
        returns[t] = g
    return returns


def return_target(batch: Minibatch, online: QNetwork, target: QNetwork, rng: Rng) -> Bootstrap:
    """Take the return of each step, which `r_t` has, as target; nothing is bootstrapped."""
    del online, target, rng
    return Bootstrap(r_t=batch.r_t, discount_t=batch.discount_t, z_t=torch.zeros_like(batch.r_t)[:, None])
