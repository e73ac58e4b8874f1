"""PQN: when it learns, from which returns, exactly resumed; and that it learns the toy game."""

import sys
from contextlib import closing
from pathlib import Path

import pytest
import torch
from test_invariants import assert_goes_on
from test_learns_catch import LEARNED
from tiny import CPU, ROLLOUTS, begun, digest_after, ticks_of, tiny_spec

from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from toy_game import PQN


def test_all_updates_of_a_rollout_follow_it_at_once() -> None:
    with begun(tiny_spec(*ROLLOUTS)) as training:
        updates = [iteration.updates for iteration in ticks_of(training, 24)]
    assert updates == ([0] * 7 + [8]) * 3


def test_weights_do_not_change_while_a_rollout_is_played() -> None:
    with begun(tiny_spec(*ROLLOUTS)) as training:
        ticks_of(training, 8)
        before = [weight.clone() for weight in training.learner.online.parameters()]
        ticks_of(training, 7)
        assert all(map(torch.equal, before, training.learner.online.parameters()))
        ticks_of(training, 1)
        assert not any(map(torch.equal, before, training.learner.online.parameters()))


def test_returns_are_those_of_the_network_that_played_the_rollout() -> None:
    with begun(tiny_spec(*ROLLOUTS, "learner.trace_decay=0.0")) as training:
        ticks_of(training, 7)
        online, ring = training.learner.online, training.replay.ring
        training.learn = lambda: 0
        ticks_of(training, 1)
        rows = training.replay.indices()
        max_q = torch.stack([online(ring.stacks(row)).amax(dim=1) for row in rows])
        expected = ring.reward[rows[:-1]] + 0.99 * ring.discount[rows[:-1]] * max_q[1:]
        del training.learn
        training.update = lambda _: None
        training.learn()
        found, steps = training.replay.returns[rows[:-1]], ring.is_step[rows[:-1]]
    torch.testing.assert_close(found[steps], expected[steps])


@pytest.mark.fault("W03")
@pytest.mark.parametrize("iterations", [pytest.param(16, marks=pytest.mark.slow), 21])
def test_loaded_training_goes_on_as_the_saved_one_would(iterations: int) -> None:
    # 16 iterations: at the end of a rollout; 21: within one
    assert_goes_on(tiny_spec("training.total_frames=640", *ROLLOUTS), iterations)


def test_rollouts_that_are_longer_than_the_prefill_are_resumed() -> None:
    # after 15 iterations some 45 steps follow the prefill, and all updates are those of the first 8
    assert_goes_on(tiny_spec("training.total_frames=640", *ROLLOUTS, "replay.prefill_steps=12"), 15)


def test_updates_that_no_rollout_made_are_refused() -> None:
    spec = tiny_spec(*ROLLOUTS)
    with begun(spec) as training:
        ticks_of(training, 9)
        training.clock.advance(steps=0, updates=1)
        with closing(assemble(spec, CPU)) as restored, pytest.raises(ValueError, match="found 9, expected 8"):
            restored.load_state_dict(training.state_dict())


@pytest.mark.slow
def test_state_does_not_depend_on_workers() -> None:
    spec = tiny_spec("training.total_frames=440", *ROLLOUTS)
    workers = tiny_spec("training.total_frames=440", *ROLLOUTS, "system.workers=2")
    assert digest_after(spec) == digest_after(workers)


def mean_return(seed: int) -> float:
    """Train on the toy game, and return the mean return of 20 greedy games."""
    spec: Spec = tiny_spec(*PQN, f"seed={seed}")
    with begun(spec) as training:
        ticks_of(training)
        return EvaluationScore.of(evaluate(training.learner.online, spec, episodes=20)).mean_return


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pqn_learns_the_toy_game(seed: int) -> None:
    assert mean_return(seed) >= LEARNED
