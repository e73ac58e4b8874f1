"""Learning rules: pure functions of tensors, in the papers' symbols and in time order.

`x_tm1` belongs to the step an action was taken at, `x_t` to the step it led to. B minibatch, A actions.
`discount_t` holds γⁿ times the product of the step discounts, so no rule sees an ending or an n.
"""

from __future__ import annotations

from jaxtyping import Float, Int64
from torch import Tensor


def q_target(
    r_t: Float[Tensor, "B"], discount_t: Float[Tensor, "B"], q_t: Float[Tensor, "B A"]
) -> Float[Tensor, "B"]:
    """Return r + γ max q: the target network chooses and rates. Mnih et al. (2015), Algorithm 1."""
    return r_t + discount_t * q_t.amax(dim=1)


def double_q_target(
    r_t: Float[Tensor, "B"],
    discount_t: Float[Tensor, "B"],
    q_t: Float[Tensor, "B A"],
    q_t_selector: Float[Tensor, "B A"],
) -> Float[Tensor, "B"]:
    """Return r + γ q[argmax selector]: one chooses, the other rates. van Hasselt et al. (2016), eq. 4."""
    return r_t + discount_t * taken(q_t, q_t_selector.argmax(dim=1))


def taken(q: Float[Tensor, "B A"], a: Int64[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Return the value of each row's action."""
    return q.gather(1, a[:, None]).squeeze(1)


def huber(td_error: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Return ½δ² where |δ| ≤ 1, else |δ| − ½; its gradient is δ clipped to ±1. Mnih et al. (2015)."""
    magnitude = td_error.abs()
    quadratic = magnitude.clamp(max=1.0)
    return quadratic * (magnitude - 0.5 * quadratic)


def mse(td_error: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
    """Return ½δ², whose gradient is the TD error itself."""
    return 0.5 * td_error.square()
