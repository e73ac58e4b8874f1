"""The sections of the schema for the agent, from replay to optimizer. See schema.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from atari_dqn.spec.constraints import (
    Among,
    AtLeast,
    AtMost,
    Auto,
    Below,
    Extensible,
    MoreThan,
    Unless,
    When,
    Within,
)

FLOAT32_MAX = 3.4028234663852886e38
"""Bound of the numbers that scale weights, which are float32."""
_CATEGORICAL = ("c51", "hl_gauss")
"""The distributions that are probabilities."""
_ADAMS = ("adam", "radam")
_WIDEST_BINS = 1e3
"""Bound of σ in bins: a Gaussian that is wider than the support is nearly uniform on it."""
_RETURN = Within(-1e9, 1e9)
"""Bound of returns; no game has larger scores."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The replay buffer."""

    kind: Literal["transitions", "sequences", "rollouts"]
    """What is sampled: `transitions` one by one, Mnih et al. (2015), `sequences` of consecutive steps of an
    episode, which agents with memory learn from, Kapturowski et al. (2019), or the steps of `rollouts`, all
    of which are replaced after the updates on them, Gallici et al. (2025)."""
    capacity_steps: Annotated[int, AtLeast(1)]
    """Number of steps kept, over all environments; one frame is stored for each. Of rollouts: the steps of
    one rollout of all environments; 128 · 32 in Gallici et al. (2025)."""
    sequence_steps: Annotated[int | None, AtLeast(1), When("replay.kind", "sequences")]
    """Number m of steps of a sequence that are learned from; fewer where the episode ends before. 80 in
    Kapturowski et al. (2019)."""
    burn_in_steps: Annotated[int | None, AtLeast(0), When("replay.kind", "sequences")]
    """Number of steps before a sequence from which only the recurrent state is computed. An episode's first
    sequence has none. 40 in Kapturowski et al. (2019). 0 without a recurrent layer."""
    sequence_period_steps: Annotated[int | None, AtLeast(1), When("replay.kind", "sequences")]
    """Steps between the starts of an episode's sequences. 40 in Kapturowski et al. (2019): each step is in
    two sequences."""
    stored_state: Annotated[bool | None, When("replay.kind", "sequences"), Unless("network.memory", "none")]
    """Unroll a sequence from the recurrent state that the actor had there, instead of from zero. Kapturowski
    et al. (2019), section 3."""
    priority_mix: Annotated[
        float | None, Within(0.0, 1.0), When("toggles.prioritized", True), When("replay.kind", "sequences")
    ]
    """η: the priority of a sequence is η times the largest |TD error| of its steps, plus 1 − η times the
    mean. 0.9 in Kapturowski et al. (2019)."""
    prefill_steps: Annotated[int, AtLeast(1)]
    """Agent steps of the random policy before learning starts. 50,000 in Mnih et al. (2015)."""
    device: Literal["auto", "cpu", "cuda"]
    """Device that stores the replay; `auto` is the learner's device if the replay fits there, otherwise
    RAM."""

    alpha: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Exponent α of the priorities; 0 samples uniformly. 0.6 in Schaul et al. (2016)."""
    beta_start: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Exponent β of the importance weights at frame 0; it changes linearly to `beta_end`."""
    beta_end: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Exponent β of the importance weights at `training.total_frames`. 1 in Schaul et al. (2016)."""
    priority_offset: Annotated[float | None, MoreThan(0.0), Below(1.0), When("toggles.prioritized", True)]
    """Constant added to |TD error|, so that every transition can be sampled; ε in Schaul et al. (2016)."""
    weight_maximum: Annotated[Literal["replay", "minibatch"] | None, When("toggles.prioritized", True)]
    """The importance weights are divided by the largest one of the whole replay, or of their minibatch, as in
    Dopamine, dqn_zoo and Kaixhin/Rainbow."""
    priority: Annotated[
        Literal["kl", "cross_entropy"] | None,
        When("toggles.prioritized", True),
        Among("toggles.distribution", _CATEGORICAL),
    ]
    """The error from which priorities are computed with C51 and HL-Gauss: the KL divergence from the target,
    Hessel et al. (2018), or the cross-entropy, which is larger by the target's entropy, as in Dopamine and
    Kaixhin/Rainbow."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network that maps stacked frames to q-values."""

    kind: Annotated[
        Literal["nature", "nature_layer_norm", "dopamine", "data_efficient", "impala"],
        Extensible("atari_dqn.networks"),
    ]
    """`nature`: three convolutions, Mnih et al. (2015). `nature_layer_norm`: the same with a layer
    normalisation before each ReLU, Gallici et al. (2025). `dopamine`: the same with padding, and one hidden
    layer shared by both dueling streams. `data_efficient`: two 5×5 convolutions, van Hasselt et al.
    (2019). `impala`: residual blocks, Espeholt et al. (2018)."""
    hidden_units: Annotated[int, AtLeast(0)]
    """Units of each fully connected hidden layer. A dueling network has one such layer for each stream, or
    one for both with `network.shared_hidden` and in `dopamine`. 512 in Mnih et al. (2015). 0 in a network
    with memory: none, Hausknecht & Stone (2015)."""
    memory: Literal["none", "lstm", "gru"]
    """Recurrent layer between the convolutions and the hidden layer: an LSTM, Hochreiter & Schmidhuber
    (1997), or a GRU, Cho et al. (2014). It needs `replay.kind = "sequences"`."""
    memory_units: Annotated[int | None, AtLeast(1), Unless("network.memory", "none")]
    """Units of the recurrent layer. 512 in Hausknecht & Stone (2015) and in Kapturowski et al. (2019)."""
    memory_inputs: Annotated[bool | None, Unless("network.memory", "none")]
    """Whether the previous action (one-hot) and its reward are inputs of the recurrent layer, next to the
    encoded frames. Kapturowski et al. (2019), section 2.3."""
    width: Annotated[int | None, AtLeast(1), When("network.kind", "impala")]
    """Factor of the number of channels in `impala`. 1 in Espeholt et al. (2018)."""
    shared_hidden: Annotated[bool | None, When("toggles.dueling", True), Unless("network.kind", "dopamine")]
    """Whether the two streams of a dueling network share one hidden layer, as in Dopamine; `dopamine` always
    has one."""
    spectral_norm: Annotated[bool | None, When("network.kind", "impala")]
    """Divide the weights of the residual blocks' convolutions by their largest singular value. Miyato et al.
    (2018); Clark et al. (2024)."""
    pool_size: Annotated[int | None, AtLeast(0), When("network.kind", "impala")]
    """Pool the output of the convolutions to this many maxima in each direction; 0 does not pool. 6 in Clark
    et al. (2024)."""
    layer_norm: Annotated[bool | None, When("network.kind", "impala")]
    """Normalise the outputs of each section's first convolution and of the fully connected hidden layer. Ba
    et al. (2016); Clark et al. (2024), appendix H."""
    noisy_sigma: Annotated[float | None, MoreThan(0.0), AtMost(FLOAT32_MAX), When("toggles.noisy", True)]
    """Initial scale of the noise, σ₀. 0.5 in Fortunato et al. (2018)."""
    init: Literal["fan_in_uniform", "he_uniform", "xavier_uniform", "orthogonal"]
    """Distribution of the initial weights. `fan_in_uniform`: U(±1/√fan_in), as DeepMind's Lua code;
    `xavier_uniform`: U(±√(6 / (fan_in + fan_out))), as Dopamine; `he_uniform` and `orthogonal`: with the
    gain of a ReLU."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The distribution of the return that the network predicts."""

    num_atoms: Annotated[int | None, AtLeast(2), Among("toggles.distribution", _CATEGORICAL)]
    """Number of atoms of the support: 51 in Bellemare et al. (2017), or of the centres of bins: 51 in
    Farebrother et al. (2024)."""
    v_min: Annotated[float | None, _RETURN, Among("toggles.distribution", _CATEGORICAL)]
    """The lowest atom; targets are clipped to the support. −10 in Bellemare et al. (2017) and in Farebrother
    et al. (2024)."""
    v_max: Annotated[float | None, _RETURN, Among("toggles.distribution", _CATEGORICAL)]
    """The highest atom. 10 in the same papers."""
    sigma_bins: Annotated[float | None, Within(0.01, _WIDEST_BINS), When("toggles.distribution", "hl_gauss")]
    """Standard deviation σ of the Gaussian around a target, in bins; σ / ς = 0.75 in Farebrother et al.
    (2024)."""
    num_quantiles: Annotated[int | None, AtLeast(1), When("toggles.distribution", "qr_dqn")]
    """Number of quantiles, at the midpoints of equal intervals. 200 in Dabney et al. (2018)."""
    num_fractions: Annotated[int | None, AtLeast(1), When("toggles.distribution", "iqn")]
    """Number N of fractions sampled for the online network's prediction. Dabney et al. (2018b)."""
    num_target_fractions: Annotated[int | None, AtLeast(1), When("toggles.distribution", "iqn")]
    """Number N′ of fractions sampled for the target. Dabney et al. (2018b)."""
    num_policy_fractions: Annotated[int | None, AtLeast(1), When("toggles.distribution", "iqn")]
    """Number K of fractions sampled to select an action; evaluations use K evenly spaced ones. Dabney et al.
    (2018b)."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """The update: its minibatch, its loss, and how often it is made."""

    discount: Annotated[float, Within(0.0, 1.0)]
    """Discount factor γ, per agent step."""
    batch_size: Annotated[int, AtLeast(1)]
    """Transitions in a minibatch, or sequences."""
    accumulate: Annotated[int, AtLeast(1)]
    """Number of equal parts of a minibatch whose gradients are accumulated. More parts need less memory.
    The update is the same to rounding, except that each part draws noise, fractions and random shifts of its
    own."""
    update_period_steps: Annotated[int, AtLeast(1)]
    """Agent steps between updates, summed over the environments. 4 in Mnih et al. (2015). All updates of a
    rollout follow it at once."""
    updates_per_period: Annotated[int, AtLeast(1)]
    """Number of updates made each time, on a minibatch each: the replay ratio, if `update_period_steps` is 1.
    1 in Mnih et al. (2015), 2 and 8 in Schwarzer et al. (2023)."""
    target_period_updates: Annotated[int, AtLeast(1)]
    """Updates between moves of the target network towards the online one, by `target_rate`. If both are 1,
    the online network is the target."""
    target_rate: Annotated[float, MoreThan(0.0), AtMost(1.0)]
    """τ in θ⁻ ← θ⁻ + τ (θ − θ⁻), by which the target network moves every `target_period_updates`. 1 copies,
    Mnih et al. (2015); 0.005 in Schwarzer et al. (2023)."""
    acting_network: Literal["online", "target"]
    """The network that acts, in training, evaluations and videos. `target` in D'Oro et al. (2023)."""
    max_abs_reward: Annotated[float, MoreThan(0.0)]
    """Rewards are clipped to ± this before they are stored; `inf` disables clipping."""
    loss: Annotated[
        Literal["huber", "mse"] | None, When("toggles.distribution", "none"), Extensible("atari_dqn.losses")
    ]
    """Loss of the TD error. Huber with δ = 1 is the error clipping of Mnih et al. (2015). Distributional
    agents have the loss of their paper."""
    reduction: Literal["sum", "mean"]
    """Reduction of the loss over a minibatch. The Lua code sums; see docs/deviations.md."""
    sequence_reduction: Annotated[Literal["sum", "mean"] | None, When("replay.kind", "sequences")]
    """Reduction of the loss of a sequence over its steps. Acme and SEED sum; Kapturowski et al. (2019) do not
    say it."""
    value_rescaling: Annotated[bool | None, When("replay.kind", "sequences")]
    """Learn h(q) instead of q, with h(x) = sign(x)(√(|x| + 1) − 1) + 0.001 x. Pohlen et al. (2018);
    Kapturowski et al. (2019) use it instead of clipping rewards."""
    trace_decay: Annotated[float | None, Within(0.0, 1.0), When("replay.kind", "rollouts")]
    """λ of the returns that are learned from rollouts: 0 bootstraps after each step, 1 at the end of the
    rollout. 0.65 in Gallici et al. (2025)."""
    max_grad_norm: Annotated[float, MoreThan(0.0)]
    """Gradients are clipped to this global norm; `inf` disables clipping."""
    precision: Literal["fp32", "bf16"] | Auto
    """Arithmetic of the torso; the head and the loss are always fp32. `auto` is bf16 if the processor or the
    GPU multiplies it and the network gains by it, otherwise fp32. As every `auto`, it is resolved when a run
    starts, by a fixed table, and the value is written into the run's spec."""
    threads: Annotated[int | Auto, AtLeast(1)]
    """Number of threads of PyTorch and of the project's kernels. Another number changes rounding, and how
    fast a run is. `auto` is OMP_NUM_THREADS if that is set, but no more than there are cores; 1 with a
    GPU; otherwise the number of physical cores, at most 8, for `data_efficient` 4 and for `impala` 16; for
    `data_efficient` without kernels, one core is left free."""
    deterministic: bool
    """On a GPU, use deterministic kernels. Without them a run neither repeats nor resumes exactly."""
    compile: bool | Auto
    """Compile acting and learning with `torch.compile`, for about a minute each time the run starts or
    resumes; the results are the same to rounding. Compiled code replaces the project's kernels, which are
    faster for most networks. Needs a C++ compiler. `auto` is true where it was measured to be much faster:
    for `impala` and `nature` on a GPU, for `data_efficient` on a CPU with AVX-512 without kernels."""
    shift_pixels: Annotated[int | None, AtLeast(0), When("toggles.random_shifts", True)]
    """Largest random shift in each direction; edge pixels are repeated. 4 in Kostrikov et al. (2020)."""
    intensity_scale: Annotated[float | None, Within(0.0, 0.5), When("toggles.random_shifts", True)]
    """Frames are multiplied by 1 + this × a normal sample clipped to ±2. 0.05 in Schwarzer et al. (2021)."""
    self_prediction_steps: Annotated[int | None, AtLeast(1), When("toggles.self_prediction", True)]
    """K: the number of next steps that are predicted. 5 in Schwarzer et al. (2021)."""
    self_prediction_weight: Annotated[
        float | None, MoreThan(0.0), AtMost(FLOAT32_MAX), When("toggles.self_prediction", True)
    ]
    """Factor λ of the sum over K steps of 1 − the cosine similarity. 2 in Schwarzer et al. (2021)."""
    reset_period_updates: Annotated[int | None, AtLeast(1), When("toggles.resets", True)]
    """Updates between resets. 40,000 in D'Oro et al. (2023) and Schwarzer et al. (2023)."""
    reset_last_updates: Annotated[int | None, AtLeast(1), When("toggles.resets", True)]
    """There is no reset after this number of updates, so that the network can recover before the end."""
    reset_keep: Annotated[float | None, Within(0.0, 1.0), When("toggles.resets", True)]
    """Factor of the encoder's weights at a reset. 0.5 in Schwarzer et al. (2023), 0.8 in D'Oro et al.
    (2023)."""
    reset_perturb: Annotated[float | None, Within(0.0, 1.0), When("toggles.resets", True)]
    """Factor of the fresh weights that are added to the encoder's at a reset. 0.5 in Schwarzer et al. (2023),
    0.2 in D'Oro et al. (2023)."""
    annealing_updates: Annotated[int | None, AtLeast(1), When("toggles.annealing", True)]
    """Updates within which n and γ reach `toggles.n_step` and `learner.discount`, exponentially. 10,000 in
    Schwarzer et al. (2023)."""
    n_step_start: Annotated[int | None, AtLeast(1), When("toggles.annealing", True)]
    """n at the start and after a reset. 10 in Schwarzer et al. (2023)."""
    discount_start: Annotated[float | None, Within(0.0, 1.0), Below(1.0), When("toggles.annealing", True)]
    """γ at the start and after a reset. 0.97 in Schwarzer et al. (2023)."""
    redo_period_updates: Annotated[int | None, AtLeast(1), When("toggles.redo", True)]
    """Updates between searches for dormant units. 1,000 in Sokar et al. (2023)."""
    redo_threshold: Annotated[float | None, Within(0.0, 1.0), When("toggles.redo", True)]
    """τ: a unit is dormant if its mean activation is at most τ times the mean of its layer. 0.025 in the code
    of Sokar et al. (2023)."""
    redo_states: Annotated[int | None, AtLeast(1), When("toggles.redo", True)]
    """Sampled states over which a unit's activation is averaged. 256 in the code of Sokar et al. (2023)."""
    munchausen_scale: Annotated[float | None, Within(0.0, 1.0), When("toggles.munchausen", True)]
    """Factor α of the log-probability that is added to the reward. 0.9 in Vieillard et al. (2020)."""
    munchausen_temperature: Annotated[
        float | None, MoreThan(0.0), AtMost(FLOAT32_MAX), When("toggles.munchausen", True)
    ]
    """Temperature τ of the soft policy. 0.03 in Vieillard et al. (2020)."""
    munchausen_lowest: Annotated[float | None, Within(-1e9, 0.0), When("toggles.munchausen", True)]
    """Lower bound l₀ to which τ ln π is clipped. −1 in Vieillard et al. (2020)."""
    munchausen_network: Annotated[Literal["target", "online"] | None, When("toggles.munchausen", True)]
    """The network whose policy π gives the log-probability: `target` in Vieillard et al. (2020), `online` in
    the code of Clark et al. (2024)."""


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """The optimizer."""

    kind: Literal["deepmind_rmsprop", "adam", "radam", "torch_rmsprop"]
    """`deepmind_rmsprop`: centred RMSProp with ε inside the square root and without momentum, as the Lua
    code. `torch_rmsprop`: centred RMSProp with ε outside the square root and with momentum, as PyTorch.
    `radam`: Adam whose first steps are rectified, Liu et al. (2020)."""
    learning_rate: Annotated[float, MoreThan(0.0), AtMost(FLOAT32_MAX)]
    """Learning rate."""
    epsilon: Annotated[float, MoreThan(0.0), AtMost(FLOAT32_MAX)]
    """ε of the denominator: inside the square root in `deepmind_rmsprop` (0.01 in Mnih et al. 2015), outside
    it in the others."""
    gradient_decay: Annotated[float | None, Within(0.0, 1.0), When("optimizer.kind", "deepmind_rmsprop")]
    """Decay of the running mean of gradients; the paper's table calls it momentum. It must equal
    `squared_gradient_decay`, or be 1 to leave the mean out: otherwise the radicand could be negative."""
    squared_gradient_decay: Annotated[
        float | None, Within(0.0, 1.0), When("optimizer.kind", "deepmind_rmsprop")
    ]
    """Decay of the running mean of squared gradients."""
    smoothing: Annotated[float | None, AtLeast(0.0), Below(1.0), When("optimizer.kind", "torch_rmsprop")]
    """Decay of the running means; `alpha` in PyTorch."""
    momentum: Annotated[float | None, AtLeast(0.0), Below(1.0), When("optimizer.kind", "torch_rmsprop")]
    """Heavy-ball momentum; 0 for none."""
    beta1: Annotated[float | None, AtLeast(0.0), Below(1.0), Among("optimizer.kind", _ADAMS)]
    """Decay β₁ of the first moment. Kingma & Ba (2015)."""
    beta2: Annotated[float | None, AtLeast(0.0), Below(1.0), Among("optimizer.kind", _ADAMS)]
    """Decay β₂ of the second moment. Kingma & Ba (2015)."""
    weight_decay: Annotated[float | None, AtLeast(0.0), Below(1.0), When("optimizer.kind", "adam")]
    """λ of the decoupled decay of weights, not of biases and normalisation layers: w ← (1 − η λ) w before
    each step. 0 is Adam; otherwise AdamW, Loshchilov & Hutter (2019). 0.1 in Schwarzer et al. (2023)."""
