"""Self-prediction, resets and annealing learn the toy game, each alone and together."""

import sys
from pathlib import Path

import pytest
from tiny import begun, ticks_of, tiny_spec

from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.run.scores import EvaluationScore

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from toy_game import LEARNING, TOGGLES

SMALL = ("network.kind=data_efficient", "env.screen_size_pixels=50", "env.num_envs=8")
PREDICTION = (
    "toggles.self_prediction=true", "learner.self_prediction_steps=2", "toggles.random_shifts=true",
    "learner.shift_pixels=1", "network.hidden_units=128",
)  # fmt: skip
AVERAGED = ("learner.target_period_updates=1", "learner.target_rate=0.02", "learner.acting_network=target")
RESETS = ("toggles.resets=true", "learner.reset_period_updates=500", "learner.reset_last_updates=500")
ANNEALING = (
    "toggles.annealing=true", "learner.annealing_updates=300", "toggles.n_step=3",
    "learner.discount_start=0.9",
)  # fmt: skip
TWICE = ("learner.updates_per_period=2",)
RAINBOW = tuple(key for key in TOGGLES["Rainbow"] if "noisy" not in key and "epsilon" not in key)
AGENTS = {
    "ratio of 2": TWICE,
    "self-prediction": PREDICTION,
    "moving average": AVERAGED,
    "resets": (*RESETS, *TWICE),
    "annealing": ANNEALING,
    "BBF": (
        *RAINBOW, *PREDICTION, *AVERAGED, *RESETS, *ANNEALING, *TWICE, "optimizer.weight_decay=0.1",
        "training.total_frames=16_000", "exploration.epsilon_decay_frames=10_000",
    ),
}  # fmt: skip
THOROUGH = {"self-prediction", "BBF", "ratio of 2", "resets", "moving average"}
"""What the thorough tests train, minutes each for most; the slow tests train the others."""
LEARNED = 3.0
"""Of ten balls at least six are caught as a rule; a game is over with three missed, and chance is −2."""


def mean_return(*overrides: str) -> float:
    """Train, and return the mean return of 20 greedy games."""
    spec = tiny_spec(*SMALL, *LEARNING, *overrides)
    with begun(spec) as training:
        ticks_of(training)
        return EvaluationScore.of(evaluate(training.actor.network, spec, episodes=20)).mean_return


@pytest.mark.fault("D21")
@pytest.mark.slow
@pytest.mark.parametrize(
    "agent",
    [pytest.param(name, marks=pytest.mark.thorough if name in THOROUGH else ()) for name in AGENTS],
)
def test_agent_learns_the_toy_game(agent: str) -> None:
    assert mean_return(*AGENTS[agent]) > LEARNED


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bbf_learns_the_toy_game_with_every_seed(seed: int) -> None:
    assert mean_return(*AGENTS["BBF"], f"seed={seed}") > LEARNED
