"""An agent with memory learns the game that no agent without memory can."""

from contextlib import closing

import pytest
from tiny import CPU, ticks_of

from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.spec.loader import load_spec
from atari_dqn.train.build import assemble

BEST = 5.0


@pytest.mark.thorough
def test_r2d2_has_95_percent_of_the_best_score_on_recall() -> None:
    spec = load_spec("recall_r2d2", ["learner.threads=1", "system.workers=0"]).spec
    with closing(assemble(spec, CPU)) as training:
        training.begin()
        ticks_of(training)
        scores = [game.episode_return for game in evaluate(training.learner.online, spec, episodes=20)]
    assert sum(scores) / len(scores) >= 0.95 * BEST
