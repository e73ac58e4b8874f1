"""Each toggle alone learns the toy game: 24,000 frames as a rule, 1,400 updates, on the smallest network."""

import sys
from pathlib import Path

import pytest
from tiny import begun, ticks_of, tiny_spec

from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.run.scores import EvaluationScore

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from toy_game import LEARNING, TOGGLES

# smaller than 50 pixels, its strides of 5 leave the lowest rows, the paddle's, unseen
SMALL = ("network.kind=data_efficient", "env.screen_size_pixels=50")
RMSPROP = ("optimizer.learning_rate=0.001", "learner.reduction=sum")
CHANGES = {
    **TOGGLES,
    "iqn": (*TOGGLES["iqn"], "training.total_frames=36_000"),  # after 24,000 one seed in ten is at chance yet
    "loss": ("learner.loss=mse",),
    "max_grad_norm": ("learner.max_grad_norm=0.1",),
    "accumulate": ("learner.accumulate=2",),
    "precision": ("learner.precision=bf16",),
    "deepmind_rmsprop": ("optimizer.kind=deepmind_rmsprop", *RMSPROP),
    "torch_rmsprop": ("optimizer.kind=torch_rmsprop", *RMSPROP),
    "sticky": ("env.sticky_probability=0.25",),
    "nature": ("network.kind=nature", "env.screen_size_pixels=36"),
    "impala": (  # the most expensive by far; after 16,000 frames one seed in fourteen is at chance yet
        "network.kind=impala",
        "env.screen_size_pixels=36",
        "exploration.epsilon_decay_frames=10_000",
    ),
    "btr": (
        "network.kind=impala",
        "env.screen_size_pixels=36",
        "network.hidden_units=64",
        "network.pool_size=4",  # of 5: with 3 the maxima leave out where the ball is
        "network.spectral_norm=true",
        "network.layer_norm=true",
        *TOGGLES["munchausen, iqn"],
        "toggles.n_step=3",
        "toggles.dueling=true",
        "toggles.prioritized=true",
        "exploration.epsilon_decay_frames=10_000",
        "training.total_frames=16_000",
    ),
    "track_b": ("track=B", "optimizer.learning_rate=0.001"),
}
SLOW = {"plain DQN", "Rainbow"}
"""What the slow tests train, with most parts among them; the thorough tests train the others."""
LEARNED = 3.0
"""Of ten balls at least six are caught as a rule; a game is over with three missed, and chance is −2."""


def marks(change: str) -> list[pytest.MarkDecorator]:
    """Return the marks of a change's training."""
    return [pytest.mark.slow if change in SLOW else pytest.mark.thorough]


def mean_return(*overrides: str, frames: int | None = None) -> float:
    """Train, and return the mean return of 20 greedy games."""
    spec = tiny_spec("env.num_envs=8", *SMALL, *LEARNING, *overrides)
    with begun(spec) as training:
        ticks_of(training, frames)
        return EvaluationScore.of(evaluate(training.learner.online, spec, episodes=20)).mean_return


@pytest.mark.fault("D21")
@pytest.mark.parametrize(
    "change", [pytest.param(name, id=name.replace(", ", "_"), marks=marks(name)) for name in CHANGES]
)
def test_agent_learns_the_toy_game(change: str) -> None:
    assert mean_return(*CHANGES[change]) >= LEARNED


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("change", ["hl_gauss", "btr"])
def test_agent_of_the_later_papers_learns_the_toy_game_with_other_seeds(change: str, seed: int) -> None:
    assert mean_return(*CHANGES[change], f"seed={seed}") >= LEARNED


def test_agent_that_has_not_learned_is_distinguished_from_one_that_has() -> None:
    assert mean_return(frames=0) < 0
