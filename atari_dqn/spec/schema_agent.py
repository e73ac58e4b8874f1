"""The schema's sections on what learns: network, distribution, learner, optimizer. See schema.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from atari_dqn.spec.constraints import AtLeast, AtMost, Below, Extensible, MoreThan, When, Within

FLOAT32_MAX = 3.4028234663852886e38
"""Weights are float32: what multiplies or divides them must be one."""
_RETURN = Within(-1e9, 1e9)
"""No game's score is larger."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The function from stacked frames to action values."""

    kind: Annotated[
        Literal["nature", "dopamine", "data_efficient", "impala"], Extensible("atari_dqn.networks")
    ]
    """`nature`: three convolutions, Mnih et al. (2015); `dopamine`: the same, padded, and one hidden layer
    for both dueling streams; `data_efficient`: two of 5×5, van Hasselt et al. (2019); `impala`: residual
    blocks, Espeholt et al. (2018)."""
    hidden_units: Annotated[int, AtLeast(1)]
    """Units of the fully connected layer; of each of the two of a dueling network, but of the one that
    `dopamine` has. 512 in `nature`."""
    width: Annotated[int | None, AtLeast(1), When("network.kind", "impala")]
    """Multiplies the channels of `impala`. 1 in Espeholt et al. (2018)."""
    noisy_sigma: Annotated[float | None, MoreThan(0.0), AtMost(FLOAT32_MAX), When("toggles.noisy", True)]
    """Noise at the start, σ₀. 0.5 in Fortunato et al. (2018)."""
    init: Literal["fan_in_uniform", "he_uniform", "xavier_uniform", "orthogonal"]
    """Initial weights: U(±1/√fan_in) as DeepMind's Lua code, U(±√(6 / (fan_in + fan_out))) as Dopamine, or
    with the gain of a ReLU."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """What is predicted of a return besides its mean."""

    num_atoms: Annotated[int | None, AtLeast(2), When("toggles.distribution", "c51")]
    """Atoms of the support. 51 in Bellemare et al. (2017)."""
    v_min: Annotated[float | None, _RETURN, When("toggles.distribution", "c51")]
    """The lowest atom; returns below it count as it. −10 in Bellemare et al. (2017)."""
    v_max: Annotated[float | None, _RETURN, When("toggles.distribution", "c51")]
    """The highest atom. 10 in Bellemare et al. (2017)."""
    num_quantiles: Annotated[int | None, AtLeast(1), When("toggles.distribution", "qr_dqn")]
    """Quantiles, at the middles of equal parts. 200 in Dabney et al. (2018)."""
    num_fractions: Annotated[int | None, AtLeast(1), When("toggles.distribution", "iqn")]
    """Fractions drawn for the prediction that is corrected, N. Dabney et al. (2018b)."""
    num_target_fractions: Annotated[int | None, AtLeast(1), When("toggles.distribution", "iqn")]
    """Fractions drawn for the target, N′."""
    num_policy_fractions: Annotated[int | None, AtLeast(1), When("toggles.distribution", "iqn")]
    """Fractions drawn to choose an action, K; evaluations spread as many evenly. Dabney et al. (2018b)."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """One gradient step, and how often."""

    discount: Annotated[float, Within(0.0, 1.0)]
    """γ, per agent step."""
    batch_size: Annotated[int, AtLeast(1)]
    """Transitions in a minibatch."""
    accumulate: Annotated[int, AtLeast(1)]
    """Equal parts of a minibatch whose gradients are added up: an update in less memory, to rounding."""
    update_period_steps: Annotated[int, AtLeast(1)]
    """Agent steps between updates, summed over environments. 4 in Mnih et al. (2015)."""
    target_period_updates: Annotated[int, AtLeast(1)]
    """Updates between copies of the online network to the target network; with 1 they are one network."""
    max_abs_reward: Annotated[float, MoreThan(0.0)]
    """Rewards are clipped to ± this before they are stored; `inf` leaves them alone."""
    loss: Annotated[
        Literal["huber", "mse"] | None, When("toggles.distribution", "none"), Extensible("atari_dqn.losses")
    ]
    """Huber with δ = 1 is the paper's TD error clipped to ±1. A distribution has the loss of its paper."""
    reduction: Literal["sum", "mean"]
    """Over a minibatch. The Lua code sums; see docs/deviations.md."""
    max_grad_norm: Annotated[float, MoreThan(0.0)]
    """Gradients are scaled down to this global norm; `inf` leaves them alone."""
    precision: Literal["auto", "fp32", "bf16"]
    """Arithmetic of the torso; the head and the loss are always fp32. `auto` is bf16 where the processor or
    the GPU multiplies it, else fp32: chosen when a run starts, and written into its spec."""
    deterministic: bool
    """On a GPU, kernels that round the same each time: without them no run repeats, or resumes exactly."""
    compile: bool
    """Acting and learning are compiled when a run starts or goes on, in a minute, into few large kernels: the
    same to rounding. Quicker without the project's own kernels, which it does not use, and for the small
    network in bf16. Takes a C++ compiler."""
    shift_pixels: Annotated[int | None, AtLeast(0), When("toggles.random_shifts", True)]
    """Random shifts are at most this far, each way; edges are repeated. 4 in Kostrikov et al. (2020)."""
    intensity_scale: Annotated[float | None, Within(0.0, 0.5), When("toggles.random_shifts", True)]
    """Frames are multiplied by 1 + this × a normal number within ±2. 0.05 in Schwarzer et al. (2021)."""
    munchausen_scale: Annotated[float | None, Within(0.0, 1.0), When("toggles.munchausen", True)]
    """Share of the log-probability that is added to the reward, α. 0.9 in Vieillard et al. (2020)."""
    munchausen_temperature: Annotated[
        float | None, MoreThan(0.0), AtMost(FLOAT32_MAX), When("toggles.munchausen", True)
    ]
    """Temperature of the soft policy, τ. 0.03 in Vieillard et al. (2020)."""
    munchausen_lowest: Annotated[float | None, Within(-1e9, 0.0), When("toggles.munchausen", True)]
    """τ ln π is clipped from below to this, l₀. −1 in Vieillard et al. (2020)."""


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """The rule that turns gradients into weights."""

    kind: Literal["deepmind_rmsprop", "adam", "torch_rmsprop"]
    """`deepmind_rmsprop`: centred, ε inside the root, no momentum term, as the Lua code; `torch_rmsprop`:
    centred, ε outside the root, with a momentum term, as PyTorch."""
    learning_rate: Annotated[float, MoreThan(0.0), AtMost(FLOAT32_MAX)]
    """Step size."""
    epsilon: Annotated[float, MoreThan(0.0), AtMost(FLOAT32_MAX)]
    """Added under the root by `deepmind_rmsprop` (0.01), beside it by `adam` and `torch_rmsprop`."""
    gradient_decay: Annotated[float | None, Within(0.0, 1.0), When("optimizer.kind", "deepmind_rmsprop")]
    """Decay of the running mean of gradients; the paper's table calls it momentum. The same as
    `squared_gradient_decay`, or 1 to leave the mean out: else the root could be of a negative number."""
    squared_gradient_decay: Annotated[
        float | None, Within(0.0, 1.0), When("optimizer.kind", "deepmind_rmsprop")
    ]
    """Decay of the running mean of squared gradients."""
    smoothing: Annotated[float | None, AtLeast(0.0), Below(1.0), When("optimizer.kind", "torch_rmsprop")]
    """Decay of the running means, PyTorch's `alpha`."""
    momentum: Annotated[float | None, AtLeast(0.0), Below(1.0), When("optimizer.kind", "torch_rmsprop")]
    """Heavy-ball momentum; 0 for none."""
    beta1: Annotated[float | None, AtLeast(0.0), Below(1.0), When("optimizer.kind", "adam")]
    """Decay of the first moment. Kingma & Ba (2015)."""
    beta2: Annotated[float | None, AtLeast(0.0), Below(1.0), When("optimizer.kind", "adam")]
    """Decay of the second moment."""
