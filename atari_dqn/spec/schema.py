"""The schema of a run's spec: one frozen dataclass for each section, every key documented on the line below.

Units are in the names: `_frames` are emulator frames, `_steps` agent steps, `_updates` gradient steps. The
schema has no defaults: the track (`tracks/*.toml`) gives a value for every key, and a spec overrides some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from atari_dqn.spec.constraints import AtLeast, AtMost, Auto, Below, MoreThan, Unless, When, Within
from atari_dqn.spec.schema_actors import Actors
from atari_dqn.spec.schema_agent import Distribution, Learner, Network, Optimizer, Replay

_MOST_EXPONENT = 1_000
"""Far above any in use. With an infinite exponent, ε of the first environment would be NaN: ∞ · 0."""


@dataclass(frozen=True, kw_only=True)
class Toggles:
    """Ablations: each chooses one part of the agent. They never mark a run as deviating from its track."""

    double: bool
    """Double DQN: the online network selects the next action, the target network evaluates it. van Hasselt et
    al. (2016)."""
    dueling: bool
    """Dueling network: separate streams for the state value and the advantages. Wang et al. (2016)."""
    prioritized: bool
    """Prioritized replay: sample transitions in proportion to a power of their TD error. Schaul et al.
    (2016)."""
    n_step: Annotated[int, AtLeast(1)]
    """Number of rewards summed before bootstrapping. Sutton (1988); 3 in Hessel et al. (2018)."""
    noisy: bool
    """Noisy layers: explore by learned noise in the fully connected layers instead of ε. Fortunato et al.
    (2018)."""
    distribution: Literal["none", "c51", "qr_dqn", "iqn", "hl_gauss"]
    """What the network predicts of the return: its mean, probabilities of atoms (Bellemare et al. 2017),
    quantiles at fixed fractions (Dabney et al. 2018), quantiles at sampled fractions (Dabney et al. 2018b),
    probabilities of bins, learned from a Gaussian around the target (Farebrother et al. 2024)."""
    random_shifts: bool
    """Data augmentation: random shifts and intensity changes of the sampled frames. Kostrikov et al.
    (2020)."""
    munchausen: bool
    """Munchausen DQN: a soft target, and the policy's scaled log-probability added to the reward. Vieillard
    et al. (2020)."""
    self_prediction: bool
    """Self-prediction: an auxiliary loss predicts the encoded frames of the next steps from the encoded frame
    and the actions. Schwarzer et al. (2021), SPR."""
    resets: bool
    """Reset the head's weights, and in part the encoder's, periodically. Nikishin et al. (2022); D'Oro et al.
    (2023)."""
    annealing: bool
    """Begin with long n-step returns and a small γ, also after each reset, and anneal both. Schwarzer et al.
    (2023), BBF."""
    redo: bool
    """ReDo: give new weights to units that are hardly ever active, periodically. Sokar et al. (2023)."""


@dataclass(frozen=True, kw_only=True)
class Env:
    """The environment: the game, its preprocessing and its episodes."""

    kind: Literal["atari", "catch", "recall"]
    """Type of environment: the Arcade Learning Environment, or a toy game. `catch` is for tests; `recall`
    needs memory."""
    num_envs: Annotated[int, AtLeast(1)]
    """Number of environments that step together. 1 in Mnih et al. (2015); more changes results."""
    frame_skip: Annotated[int, AtLeast(1)]
    """Emulator frames for which each action is repeated. 4 in Mnih et al. (2015)."""
    screen_size_pixels: Annotated[int, AtLeast(36)]
    """Height and width of a preprocessed frame. 84 in Mnih et al. (2015); the convolutions need at least
    36, and 320 is the most."""
    resize: Literal["area", "bilinear"]
    """Interpolation that scales the 210×160 screen to a square: `area` as Dopamine and Gymnasium, `bilinear`
    as DeepMind's Lua code."""
    stack_frames: Annotated[int, AtLeast(1)]
    """Number of frames stacked into an observation. 4 in Mnih et al. (2015)."""
    sticky_probability: Annotated[float, AtLeast(0.0), Below(1.0)]
    """Probability, at each emulator frame, of repeating the previous frame's action. 0.25 in Machado et al.
    (2018)."""
    flicker_probability: Annotated[float, AtLeast(0.0), Below(1.0)]
    """Probability, at each agent step, that the frame is obscured: the agent gets a black one, in training
    and in evaluations. 0.5 in Hausknecht & Stone (2015)."""
    noop_max_frames: Annotated[int, AtLeast(0)]
    """An episode begins with 1 to this many no-op frames; 0 for none. 30 in Mnih et al. (2015)."""
    max_episode_frames: Annotated[int, AtLeast(1)]
    """Emulator frames after which a training episode is truncated. 18,000 is five minutes."""
    terminal_on_life_loss: bool
    """In training, treat a lost life as terminal: the target does not bootstrap, but the game continues."""
    life_loss_ends_skip: bool
    """In training, end a step at the frame in which a life is lost, as DeepMind's Lua code and Dopamine do.
    Otherwise repeat the action for all frames of the step, as dqn_zoo does. The end of a game always ends a
    step."""
    full_action_set: bool
    """Use all 18 actions instead of those that the game needs."""


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """ε-greedy exploration: ε is 1 during the prefill, in every environment."""

    kind: Literal["linear", "spectrum"]
    """ε after the prefill. `linear`: the same in all environments, decreasing linearly. `spectrum`: constant,
    and different in each environment, Horgan et al. (2018)."""
    epsilon_start: Annotated[float | None, Within(0.0, 1.0), When("exploration.kind", "linear")]
    """ε at the first learning step."""
    epsilon_end: Annotated[float | None, Within(0.0, 1.0), When("exploration.kind", "linear")]
    """ε after `epsilon_decay_frames`."""
    epsilon_decay_frames: Annotated[int | None, AtLeast(1), When("exploration.kind", "linear")]
    """Emulator frames over which ε decreases, counted from the end of the prefill. It has no effect if
    `epsilon_start` and `epsilon_end` are equal."""
    epsilon_off_frames: Annotated[int | None, AtLeast(0), When("exploration.kind", "linear")]
    """Emulator frames, counted from the end of the prefill, after which ε is 0; 0 for never. 100,000,000 in
    Clark et al. (2024), whose noisy layers explore on."""
    spectrum_base: Annotated[float | None, MoreThan(0.0), Below(1.0), When("exploration.kind", "spectrum")]
    """Environment i of N has ε = base^(1 + exponent · i / (N − 1)), i = 0 … N − 1: the base is ε of the first
    environment, which explores most. 0.4 in Horgan et al. (2018)."""
    spectrum_exponent: Annotated[
        float | None, AtLeast(0.0), AtMost(_MOST_EXPONENT), When("exploration.kind", "spectrum")
    ]
    """Exponent of the spectrum: ε of the last environment, which explores least, is base^(1 + exponent). 7 in
    Horgan et al. (2018)."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The length of the run."""

    total_frames: Annotated[int, AtLeast(1)]
    """Emulator frames of the run, including the prefill."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Evaluations: complete games, with rewards not clipped and lost lives not terminal."""

    epsilon: Annotated[float, Within(0.0, 1.0)]
    """Probability of a random action. 0.05 in Mnih et al. (2015)."""
    max_episode_frames: Annotated[int, AtLeast(1)]
    """Emulator frames after which an evaluation episode is truncated."""
    light_period_frames: Annotated[int, AtLeast(1)]
    """Emulator frames between light evaluations."""
    light_episodes: Annotated[int, AtLeast(1), AtMost(1_000_000)]
    """Number of episodes of a light evaluation."""
    full_period_frames: Annotated[int, AtLeast(1)]
    """Emulator frames between full evaluations, after each of which a checkpoint is saved."""
    full_episodes: Annotated[int, AtLeast(1), AtMost(1_000_000)]
    """Number of episodes of a full evaluation and of the final one."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """When checkpoints are saved, and which are kept."""

    period_frames: Annotated[int, AtLeast(0)]
    """Emulator frames between checkpoints, in addition to those after full evaluations; 0 for none.
    Cannot change results; not part of the spec's digest."""
    period_seconds: Annotated[float, AtLeast(0.0)]
    """Longest time from one checkpoint to the next; 0 for no limit.
    Cannot change results; not part of the spec's digest."""
    keep_last: Annotated[int, AtLeast(1)]
    """Number of newest checkpoints kept, in addition to the best ones."""
    keep_best: Annotated[int, AtLeast(1)]
    """Number of checkpoints kept that have the best mean returns in full evaluations."""
    replay: bool
    """Save the replay as well. Without it a resumed run starts with an empty replay, and therefore differs
    from one that was not interrupted."""
    on_full_disk: Literal["stop", "continue"]
    """If a periodic checkpoint does not fit on the disk: end the run, or continue and try again at the next
    one."""


@dataclass(frozen=True, kw_only=True)
class Logging:
    """How often metrics are written."""

    update_period_steps: Annotated[int, AtLeast(1)]
    """Agent steps between rows of update_log.csv."""
    replay_period_steps: Annotated[int, AtLeast(1)]
    """Agent steps between rows of replay_log.csv, prediction_log.csv and memory_log.csv."""
    rolling_episodes: Annotated[int, AtLeast(1)]
    """Number of training episodes in a rolling mean, at most 100,000: a checkpoint has each of them."""


@dataclass(frozen=True, kw_only=True)
class Gates:
    """Health checks: when a run warns, and when it halts. A period is `logging.update_period_steps`.

    They cannot change results and are not part of the spec's digest.
    """

    check_period_updates: Annotated[int, AtLeast(1)]
    """Updates between checks of the updates' metrics, which arrive from a GPU one iteration late. Every
    update is checked."""
    max_consecutive_nonfinite_gradients: Annotated[int, AtLeast(1)]
    """Halt after more than this many consecutive updates with a gradient that is not finite. Such an update
    changes no weight."""
    max_grad_norm: Annotated[float, MoreThan(0.0)]
    """Warn if the global norm of the gradients, before clipping, exceeds this."""
    max_q_over_bound: Annotated[float, MoreThan(0.0)]
    """Warn if |Q| exceeds this multiple of the largest possible return, which is `learner.max_abs_reward` /
    (1 − γ); with `learner.value_rescaling`, of h of that return."""
    max_evaluation_drop: Annotated[float, Within(0.0, 1.0)]
    """Warn if full evaluations are below the best one by more than this fraction of its gain. The gain is
    the best score minus 0, or minus the first score if that is negative."""
    evaluation_drop_evaluations: Annotated[int, AtLeast(1)]
    """Number of consecutive full evaluations with such a drop before the warning."""
    max_greedy_action_share: Annotated[float, Within(0.0, 1.0)]
    """Warn if one action's fraction of the greedy actions exceeds this; 1 never warns."""
    greedy_action_periods: Annotated[int, AtLeast(1)]
    """Number of consecutive periods with such a fraction before the warning. An untrained network often has
    the same greedy action for a long time."""
    max_dead_unit_share: Annotated[float, Within(0.0, 1.0)]
    """Warn if more than this fraction of the hidden units are 0 for a whole minibatch; 1 never warns."""
    min_effective_share: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Warn if the effective sample size, (Σp)² / Σp², is less than this fraction of the transitions."""
    min_throughput_share: Annotated[float, Within(0.0, 1.0)]
    """Warn if the updates per second fall below this fraction of the run's median; 0 never warns."""
    throughput_drop_periods: Annotated[int, AtLeast(1)]
    """Number of consecutive periods with such a throughput before the warning."""
    min_free_disk_bytes: Annotated[int, AtLeast(0)]
    """Warn if the run's disk has less free space than this."""


@dataclass(frozen=True, kw_only=True)
class System:
    """Keys that cannot change results; they are not part of the spec's digest."""

    workers: Annotated[int | Auto, AtLeast(0)]
    """Number of worker processes that run emulators; 0 runs them in the learner's process. `auto` is one
    fewer than the number of cores, two fewer with a GPU, one more where rollouts take turns with learning,
    but at most 16 and no more than there are environments; 0 for one environment or core, for toy games,
    and with actors."""
    actors_per_core: Annotated[int | None, AtLeast(1), Unless("actors.mode", "none")]
    """Largest number of actors for each core; a run that has more is refused."""
    evaluation_envs: Annotated[int, AtLeast(1)]
    """Number of environments of an evaluation, which play its episodes in parallel."""
    evaluation_workers: Annotated[int, AtLeast(0)]
    """Number of worker processes of an evaluation, started for each one; 0 runs it in the learner's
    process."""
    evaluation_video: bool
    """Make a video of the median episode of each full evaluation, in another process."""
    cuda_graphs: bool
    """Replay acting and updates as CUDA graphs if learner and replay are on a GPU, and evaluations if the
    network is: the same kernels in the same order, without launching each from the host. Not defined for
    sequences."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The complete specification of a run."""

    track: Literal["A", "B", "C", "D"]
    """A: faithful to Mnih et al. (2015). B: Double DQN, dueling network and prioritized replay, with Adam and
    sticky actions. C: data-efficient, 400,000 frames, van Hasselt et al. (2019). D: large-scale, with many
    environments and unclipped rewards, Kapturowski et al. (2019)."""
    game: str
    """ROM id in ale-py of a single-player game, in snake case."""
    seed: Annotated[int, AtLeast(0)]
    """The seed of all random streams of the run."""
    toggles: Toggles
    env: Env
    exploration: Exploration
    actors: Actors
    replay: Replay
    network: Network
    distribution: Distribution
    learner: Learner
    optimizer: Optimizer
    training: Training
    evaluation: Evaluation
    checkpoint: Checkpoint
    logging: Logging
    gates: Gates
    system: System
