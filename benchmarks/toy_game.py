"""Overrides with which the toy game is learned in 24,000 frames, those of each toggle, and of two agents.

Tests learn by them, and `learning_catch.py` measures by them.
"""

LEARNING = (
    "env.max_episode_frames=1000", "env.noop_max_frames=0",
    "exploration.epsilon_decay_frames=16_000", "exploration.epsilon_end=0.05",
    "replay.capacity_steps=8_000", "replay.prefill_steps=400",
    "learner.batch_size=32", "learner.target_period_updates=100", "learner.reduction=mean",
    "optimizer.kind=adam", "optimizer.learning_rate=0.001", "network.init=he_uniform",
    "evaluation.epsilon=0.0", "evaluation.max_episode_frames=1000", "training.total_frames=24_000",
)  # fmt: skip
"""Plain DQN with Adam and a batch's mean."""
PQN = (
    *LEARNING, "replay.kind=rollouts", "network.kind=nature_layer_norm", "network.hidden_units=64",
    "env.screen_size_pixels=36", "env.num_envs=16", "replay.capacity_steps=256", "replay.prefill_steps=256",
    "learner.batch_size=64", "learner.update_period_steps=16", "learner.target_period_updates=1",
    "learner.trace_decay=0.9", "learner.loss=mse", "learner.max_grad_norm=10.0", "optimizer.kind=radam",
    "training.total_frames=120_000",
)  # fmt: skip
"""PQN: rollouts of 16 steps of 16 environments, and four passes over each."""
NOISY = ("toggles.noisy=true", "exploration.epsilon_end=0.0")
IQN = (
    "toggles.distribution=iqn", "distribution.num_fractions=8", "distribution.num_target_fractions=8",
    "distribution.num_policy_fractions=8",
)  # fmt: skip
TOGGLES = {
    "plain DQN": (),
    "double": ("toggles.double=true",),
    "dueling": ("toggles.dueling=true",),
    "prioritized": ("toggles.prioritized=true",),
    "n_step": ("toggles.n_step=3",),
    "noisy": NOISY,
    "c51": ("toggles.distribution=c51",),
    "hl_gauss": ("toggles.distribution=hl_gauss",),
    "qr_dqn": ("toggles.distribution=qr_dqn", "distribution.num_quantiles=50"),
    "iqn": IQN,
    "munchausen": ("toggles.munchausen=true",),
    "munchausen, iqn": (*IQN, "toggles.munchausen=true"),
    "random_shifts": ("toggles.random_shifts=true", "learner.shift_pixels=1"),
    "Rainbow": (
        *NOISY, "toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true",
        "toggles.n_step=3", "toggles.distribution=c51",
    ),
}  # fmt: skip
