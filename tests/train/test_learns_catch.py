"""Each toggle alone learns the toy game: 24,000 frames, some 1,400 updates, ten seconds."""

import pytest
from tiny import begun, ticks_of, tiny_spec

from atari_dqn.evaluate import evaluate
from atari_dqn.scores import EvaluationScore

QUICK = (
    "env.lanes=8", "env.max_episode_frames=1000", "env.noop_max_frames=0",
    "exploration.epsilon_decay_frames=16_000", "exploration.epsilon_end=0.05",
    "replay.capacity_steps=8_000", "replay.prefill_steps=400",
    "learner.batch_size=32", "learner.target_period_updates=100", "learner.reduction=mean",
    "optimizer.kind=adam", "optimizer.learning_rate=0.001", "network.init=he_uniform",
    "training.total_frames=24_000", "evaluation.epsilon=0.0", "evaluation.max_episode_frames=1000",
)  # fmt: skip
"""Track A's plain DQN, with Adam and a batch's mean: the toggles are turned on one at a time."""
RMSPROP = ("optimizer.learning_rate=0.001", "learner.reduction=sum")
NOISY = ("toggles.noisy=true", "exploration.epsilon_end=0.0")
IQN = (
    "toggles.distribution=iqn", "distribution.num_fractions=8", "distribution.num_target_fractions=8",
    "distribution.num_policy_fractions=8",
)  # fmt: skip
CHANGES = {
    "none": (),
    "double": ("toggles.double=true",),
    "dueling": ("toggles.dueling=true",),
    "prioritized": ("toggles.prioritized=true",),
    "n_step": ("toggles.n_step=3",),
    "loss": ("learner.loss=mse",),
    "max_grad_norm": ("learner.max_grad_norm=0.1",),
    "accumulate": ("learner.accumulate=2",),
    "precision": ("learner.precision=bf16",),
    "deepmind_rmsprop": ("optimizer.kind=deepmind_rmsprop", *RMSPROP),
    "torch_rmsprop": ("optimizer.kind=torch_rmsprop", *RMSPROP),
    "sticky": ("env.sticky_probability=0.25",),
    "c51": ("toggles.distribution=c51",),
    "noisy": NOISY,
    "rainbow": (
        "toggles.double=true",
        "toggles.dueling=true",
        "toggles.prioritized=true",
        "toggles.n_step=3",
        "toggles.distribution=c51",
        *NOISY,
    ),
    "qr_dqn": ("toggles.distribution=qr_dqn", "distribution.num_quantiles=50"),
    "iqn": IQN,
    "m_dqn": ("toggles.munchausen=true",),
    "m_iqn": (*IQN, "toggles.munchausen=true"),
    "random_shifts": ("toggles.random_shifts=true", "learner.shift_pixels=1"),
    "impala": ("network.kind=impala",),
    # strides of 5 leave the lowest rows of 36 pixels, the paddle's, unseen
    "data_efficient": ("network.kind=data_efficient", "env.screen_size_pixels=50"),
    "track_b": ("track=B", "optimizer.learning_rate=0.001"),
}
LEARNED = 3.0
"""Of ten balls at least six are caught as a rule; a game is over with three missed, and chance is −2."""


def mean_return(*overrides: str, frames: int | None = None) -> float:
    """Train, and return the mean of 20 games played greedily."""
    spec = tiny_spec(*QUICK, *overrides)
    with begun(spec) as training:
        ticks_of(training, frames)
        return EvaluationScore.of(evaluate(training.learner.online, spec, episodes=20)).mean_return


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_agent_learns_the_toy_game(change: str) -> None:
    assert mean_return(*CHANGES[change]) >= LEARNED


def test_agent_that_has_not_learned_is_told_from_one_that_has() -> None:
    assert mean_return(frames=0) < 0
