"""Learning rules: pure functions of tensors, in the papers' symbols and in time order.

`x_tm1` belongs to the time step before the action, `x_t` to the one after it. B minibatch, A actions,
P points, Z outputs per action: a q-value, logits of atoms, or N quantiles. `discount_t` is γⁿ times the
product of the step discounts, 0 after the end of an episode, so no rule depends on n or on terminal flags.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F


def gather_q(z: Float[Tensor, "B A *Z"], a: Int64[Tensor, "B"]) -> Float[Tensor, "B *Z"]:
    """Select the outputs of each transition's action."""
    place = a.view(-1, *[1] * (z.dim() - 1)).expand(-1, 1, *z.shape[2:])
    return z.gather(1, place).squeeze(1)


def bellman_target(
    r_t: Float[Tensor, "B"], discount_t: Float[Tensor, "B"], z_t: Float[Tensor, "#B Z"]
) -> Float[Tensor, "B Z"]:
    """Compute r_t + discount_t · z_t, where z_t are q-values, quantiles or atoms."""
    return r_t[:, None] + discount_t[:, None] * z_t


def huber(td_error: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Compute ½δ² where |δ| ≤ 1, else |δ| − ½; its gradient is δ clipped to ±1. Mnih et al. (2015)."""
    return F.huber_loss(td_error, torch.zeros_like(td_error), reduction="none")


def mse(td_error: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Compute ½δ², whose gradient is the TD error itself."""
    return 0.5 * td_error.square()


def categorical_projection(
    points: Float[Tensor, "B P"], mass: Float[Tensor, "B P"], atoms: Float[Tensor, "Z"]
) -> Float[Tensor, "B Z"]:
    """Project masses at any points on evenly spaced atoms. Bellemare et al. (2017), Algorithm 1.

    The mass of a point is split between its two neighbouring atoms in proportion to nearness, which preserves
    the total mass and the mean. A point outside the support is clipped to the edge.
    """
    inside = points.clamp(atoms[0], atoms[-1])
    distance = (inside[:, None, :] - atoms[:, None]) / (atoms[1] - atoms[0])
    share = (1.0 - distance.abs()).clamp(min=0.0)
    return torch.bmm(share, mass[:, :, None]).squeeze(2)


def kl_divergence(target: Float[Tensor, "B Z"], logits: Float[Tensor, "B Z"]) -> Float[Tensor, "B"]:
    """Compute Σ m (ln m − ln p), with p the softmax of the logits and 0 ln 0 = 0.

    Its gradient equals that of `cross_entropy`. It is the priority of Hessel et al. (2018).
    """
    return (torch.xlogy(target, target) - target * logits.log_softmax(dim=1)).sum(dim=1)


def cross_entropy(target: Float[Tensor, "B Z"], logits: Float[Tensor, "B Z"]) -> Float[Tensor, "B"]:
    """Compute −Σ m ln p, with p the softmax of the logits. Bellemare et al. (2017), Algorithm 1.

    It exceeds the KL divergence by the entropy of the target, which does not depend on the logits.
    """
    return -(logits.log_softmax(dim=1) * target).sum(dim=1)


def quantile_huber(
    quantiles: Float[Tensor, "B N"], fractions: Float[Tensor, "#B N"], targets: Float[Tensor, "B M"]
) -> Float[Tensor, "B"]:
    """Compute Σᵢ meanⱼ |τᵢ − 1{δᵢⱼ < 0}| huber(δᵢⱼ), δᵢⱼ = targetⱼ − quantileᵢ.

    Dabney et al. (2018), "Distributional reinforcement learning with quantile regression", eq. 10, κ = 1.
    """
    error = targets[:, None, :] - quantiles[:, :, None]
    slope = (fractions[:, :, None] - (error < 0).to(error.dtype)).abs()
    return (slope * huber(error)).mean(dim=2).sum(dim=1)


def scaled_log_policy(q: Float[Tensor, "B A"], temperature: float) -> Float[Tensor, "B A"]:
    """Compute τ ln π, with π the softmax of q / τ; finite if q is. Vieillard et al. (2020), eq. 2."""
    return temperature * (q / temperature).log_softmax(dim=1)


def soft_value(
    z_t: Float[Tensor, "B A Z"], log_policy_t: Float[Tensor, "B A"], temperature: float
) -> Float[Tensor, "B Z"]:
    """Compute Σₐ π (z − τ ln π), the mean under π and τ times its entropy. Vieillard et al. (2020), eq. 2."""
    policy = (log_policy_t / temperature).exp()
    return (policy[:, :, None] * (z_t - log_policy_t[:, :, None])).sum(dim=1)


def munchausen_bonus(
    log_policy_tm1: Float[Tensor, "B A"], a_tm1: Int64[Tensor, "B"], *, scale: float, lowest: float
) -> Float[Tensor, "B"]:
    """Compute α [τ ln π(a|s)], clipped to [`lowest`, 0], to add to the reward. Vieillard et al. (2020)."""
    return scale * gather_q(log_policy_tm1, a_tm1).clamp(min=lowest, max=0.0)
