"""The schema of a run: frozen dataclasses, one section each, every key documented on the line below it.

Units are in the names: `_frames` are emulator frames, `_steps` agent steps, `_updates` gradient steps.
A section has no defaults: a track (`tracks/*.toml`) gives every key, a spec overrides some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from atari_dqn.spec.constraints import AtLeast, Below, MoreThan, When, Within
from atari_dqn.spec.schema_agent import Distribution, Learner, Network, Optimizer


@dataclass(frozen=True, kw_only=True)
class Toggles:
    """Ablations: each chooses one part, and none marks a run as deviating from its track."""

    double: bool
    """The online network chooses the next action, the target network rates it. van Hasselt et al. (2016)."""
    dueling: bool
    """Rate the state and each action's advantage apart. Wang et al. (2016)."""
    prioritized: bool
    """Sample transitions by how wrong their values were. Schaul et al. (2016)."""
    n_step: Annotated[int, AtLeast(1)]
    """Rewards summed before bootstrapping. Sutton (1988); 3 in Hessel et al. (2018)."""
    noisy: bool
    """Noise of learned size in fully connected layers explores, in place of ε. Fortunato et al. (2018)."""
    distribution: Literal["none", "c51", "qr_dqn", "iqn"]
    """What is learned of a return: its mean, masses on atoms (Bellemare et al. 2017), quantiles at fixed
    fractions (Dabney et al. 2018), quantiles at any fraction (Dabney et al. 2018b)."""
    random_shifts: bool
    """Learn from frames shifted at random, and a little brighter or darker. Kostrikov et al. (2020)."""
    munchausen: bool
    """A soft target, and the policy's log-probability added to the reward. Vieillard et al. (2020)."""


@dataclass(frozen=True, kw_only=True)
class Env:
    """The game as the agent meets it."""

    kind: Literal["atari", "catch"]
    """Which environment: the Arcade Learning Environment, or the toy game for tests."""
    num_envs: Annotated[int, AtLeast(1)]
    """Copies of the game that step together. 1 is the paper; more changes results."""
    frame_skip: Annotated[int, AtLeast(1)]
    """Emulator frames an action is held for. 4 in Mnih et al. (2015)."""
    screen_size_pixels: Annotated[int, AtLeast(36)]
    """Height and width of a preprocessed frame. 84 in Mnih et al. (2015); the convolutions need 36."""
    resize: Literal["area", "bilinear"]
    """How 210×160 becomes square: area as Dopamine and Gymnasium, bilinear as DeepMind's Lua code."""
    stack_frames: Annotated[int, AtLeast(1)]
    """Frames an agent sees at once. 4 in Mnih et al. (2015)."""
    sticky_probability: Annotated[float, AtLeast(0.0), Below(1.0)]
    """Chance, on each emulator frame, of repeating the last frame's action. 0.25 in Machado et al. (2018)."""
    noop_max_frames: Annotated[int, AtLeast(0)]
    """An episode begins with 1 to this many no-op frames; 0 for none. 30 in Mnih et al. (2015)."""
    max_episode_frames: Annotated[int, AtLeast(1)]
    """A training episode is truncated here. 18,000 is five minutes."""
    terminal_on_life_loss: bool
    """While training, do not bootstrap over a lost life; the game goes on."""
    life_loss_ends_skip: bool
    """While training, end a step at the frame that loses a life, as DeepMind's Lua code and Dopamine do; else
    hold the action for all of its frames, as dqn_zoo does. A game's end ends a step either way."""
    full_action_set: bool
    """All 18 actions instead of those the game uses."""


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """ε-greedy: ε is 1 during the prefill, then falls in a straight line."""

    epsilon_start: Annotated[float, Within(0.0, 1.0)]
    """ε at the first learning step."""
    epsilon_end: Annotated[float, Within(0.0, 1.0)]
    """ε from `epsilon_decay_frames` on."""
    epsilon_decay_frames: Annotated[int, AtLeast(1)]
    """Frames over which ε falls, counted from the end of the prefill; unused where it does not fall."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The pool of past transitions."""

    capacity_steps: Annotated[int, AtLeast(1)]
    """Agent steps kept, over all environments; one frame is stored for each."""
    prefill_steps: Annotated[int, AtLeast(1)]
    """Random steps before learning starts. 50,000 in Mnih et al. (2015)."""
    device: Literal["auto", "cpu", "cuda"]
    """Where the pool lives; `auto` is the learner's device if it fits there, else RAM."""

    alpha: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Exponent of a priority; 0 is uniform. 0.6 in Schaul et al. (2016)."""
    beta_start: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Exponent of importance weights at frame 0; from there a line to `beta_end`."""
    beta_end: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Exponent of importance weights at `training.total_frames`. 1 in Schaul et al. (2016)."""
    priority_offset: Annotated[float | None, MoreThan(0.0), Below(1.0), When("toggles.prioritized", True)]
    """Added to |TD error|, so that no transition is forgotten; ε in Schaul et al. (2016)."""
    priority: Annotated[
        Literal["kl", "cross_entropy"] | None,
        When("toggles.prioritized", True),
        When("toggles.distribution", "c51"),
    ]
    """What C51's priorities are made of: the KL divergence from the target, Hessel et al. (2018), or the
    cross-entropy, which is larger by the target's entropy, as Dopamine and Kaixhin/Rainbow have it."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How long."""

    total_frames: Annotated[int, AtLeast(1)]
    """The budget, in emulator frames, the prefill included."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores by frozen weights on environments of their own: full games, unclipped, no life-loss endings."""

    epsilon: Annotated[float, Within(0.0, 1.0)]
    """Chance of a random action. 0.05 in Mnih et al. (2015)."""
    max_episode_frames: Annotated[int, AtLeast(1)]
    """An evaluation episode is truncated here."""
    light_period_frames: Annotated[int, AtLeast(1)]
    """Frames between light evaluations."""
    light_episodes: Annotated[int, AtLeast(1)]
    """Episodes of a light evaluation."""
    full_period_frames: Annotated[int, AtLeast(1)]
    """Frames between full evaluations, each with a checkpoint of its own."""
    full_episodes: Annotated[int, AtLeast(1)]
    """Episodes of a full evaluation and of the final one."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What is kept on disk, and how often it is saved."""

    period_frames: Annotated[int, AtLeast(0)]
    """Save when a multiple of so many frames is passed, besides after full evaluations. 0: not by frames.
    Cannot change results; the spec's digest leaves it out."""
    period_seconds: Annotated[float, AtLeast(0.0)]
    """Save so many seconds after the last checkpoint, whichever comes first. 0: not by time.
    Cannot change results; the spec's digest leaves it out."""
    keep_last: Annotated[int, AtLeast(1)]
    """Newest checkpoints kept, besides the best ones."""
    keep_best: Annotated[int, AtLeast(1)]
    """Checkpoints kept for the best mean returns of their full evaluations."""
    replay: bool
    """Save the replay too. Without it a resumed run begins with an empty one, and so differs from an unbroken
    one."""
    on_full_disk: Literal["stop", "continue"]
    """Where a periodic checkpoint finds no room: end the run, or train on and try again at the next one."""


@dataclass(frozen=True, kw_only=True)
class Logging:
    """What is written down, and how often."""

    update_period_steps: Annotated[int, AtLeast(1)]
    """Agent steps between rows of update_log.csv."""
    replay_period_steps: Annotated[int, AtLeast(1)]
    """Agent steps between rows of replay_log.csv and of prediction_log.csv."""
    rolling_episodes: Annotated[int, AtLeast(1)]
    """Training episodes in a rolling mean."""


@dataclass(frozen=True, kw_only=True)
class Gates:
    """Failure gates: when a run warns, and when it halts. A period is `logging.update_period_steps`.

    They cannot change what is learned, so the spec's digest leaves them out.
    """

    check_period_updates: Annotated[int, AtLeast(1)]
    """Updates between looks at their metrics, which come from a GPU a tick late. No update is left out."""
    max_consecutive_nonfinite_gradients: Annotated[int, AtLeast(1)]
    """Halt after more updates in a row than this without a finite gradient; none of them moves a weight."""
    max_grad_norm: Annotated[float, MoreThan(0.0)]
    """Warn above this global norm, before clipping."""
    max_q_over_bound: Annotated[float, MoreThan(0.0)]
    """Warn where |Q| exceeds this many times `learner.max_abs_reward` / (1 − γ), the most a return can be."""
    max_evaluation_drop: Annotated[float, Within(0.0, 1.0)]
    """Warn where full evaluations lose more than this share of what the best one had gained."""
    evaluation_drop_evaluations: Annotated[int, AtLeast(1)]
    """Full evaluations in a row that must have dropped so far."""
    max_greedy_action_share: Annotated[float, Within(0.0, 1.0)]
    """Warn where one action is a larger share of the greedy ones than this. 1 never warns."""
    greedy_action_periods: Annotated[int, AtLeast(1)]
    """Periods in a row in which it must be; an untrained network often has one action for long."""
    max_dead_unit_share: Annotated[float, Within(0.0, 1.0)]
    """Warn where a larger share of hidden units than this is 0 for a whole minibatch. 1 never warns."""
    min_effective_share: Annotated[float | None, Within(0.0, 1.0), When("toggles.prioritized", True)]
    """Warn where the effective sample size, (Σp)² / Σp², is less than this share of the transitions."""
    min_throughput_share: Annotated[float, Within(0.0, 1.0)]
    """Warn below this share of the run's own median of updates a second. 0 never warns."""
    throughput_drop_periods: Annotated[int, AtLeast(1)]
    """Periods in a row that must be so slow."""
    min_free_disk_bytes: Annotated[int, AtLeast(0)]
    """Warn where the run's disk has less space than this."""


@dataclass(frozen=True, kw_only=True)
class System:
    """Keys that cannot change results; the spec's digest leaves them out."""

    workers: Annotated[int, AtLeast(0)]
    """Processes that emulate; 0 emulates in the learner's own."""
    evaluation_envs: Annotated[int, AtLeast(1)]
    """Evaluation episodes that run side by side."""
    evaluation_workers: Annotated[int, AtLeast(0)]
    """Processes that emulate an evaluation, begun anew for each; 0 emulates in the learner's own."""
    evaluation_video: bool
    """Record the median game of each full evaluation, and make it a video in another process."""
    cuda_graphs: bool
    """Play acting and updates from CUDA graphs, where learner and replay are on a GPU: the same kernels in
    the same order, without the host's work between them."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One run, complete. Later tracks share these sections."""

    track: Literal["A", "B", "C"]
    """A: Mnih et al. (2015), faithful. B: Double, Dueling and prioritized, with Adam and sticky actions.
    C: data-efficient, 400,000 frames, van Hasselt et al. (2019)."""
    game: str
    """A single-player ROM of ale-py, in snake case."""
    seed: Annotated[int, AtLeast(0)]
    """Every random stream of the run derives from it."""
    toggles: Toggles
    env: Env
    exploration: Exploration
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
