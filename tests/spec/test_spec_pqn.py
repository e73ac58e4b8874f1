"""The values of PQN's spec, and the combinations with rollouts that are refused."""

from pathlib import Path

import pytest

from atari_dqn.compare.reference.agents import subject_of
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec

PQN = Path(__file__).parents[2] / "runs" / "pqn.toml"


def test_pqn_has_the_numbers_of_its_code() -> None:
    spec = load_spec(PQN).spec
    steps, epochs, minibatches = 32, 2, 32
    assert spec.replay.capacity_steps == spec.env.num_envs * steps == 128 * steps
    assert spec.replay.capacity_steps // spec.learner.update_period_steps == epochs * minibatches
    assert spec.learner.batch_size * minibatches == spec.replay.capacity_steps
    assert (spec.learner.discount, spec.learner.trace_decay, spec.learner.max_grad_norm) == (0.99, 0.65, 10.0)
    assert (spec.optimizer.kind, spec.optimizer.learning_rate) == ("radam", 2.5e-4)
    assert spec.exploration.epsilon_decay_frames == spec.training.total_frames // 10


def test_rollouts_bring_the_values_of_their_paper(write_spec) -> None:
    spec = load_spec(write_spec(), ["replay.kind=rollouts", "env.num_envs=128"]).spec
    assert (spec.replay.capacity_steps, spec.learner.batch_size, spec.learner.trace_decay) == (
        4_096,
        128,
        0.65,
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("toggles.double=true", "it is not supported with rollouts: set the first to false"),
        ("toggles.prioritized=true", "it is not supported with rollouts"),
        ("toggles.n_step=3", "it is not supported with rollouts: set the first to 1"),
        ("toggles.distribution=iqn", 'it is not supported with rollouts: set the first to "none"'),
        ("toggles.random_shifts=true", "it is not supported with rollouts"),
        ("toggles.munchausen=true", "it is not supported with rollouts"),
        ("learner.updates_per_period=2", "it is not supported with rollouts: set the first to 1"),
        ("learner.target_rate=0.5", "it is not supported with rollouts: set the first to 1.0"),
        ("toggles.redo=true", "it is not supported with rollouts"),
        ("learner.compile=true", "it is not supported with rollouts"),
        ("system.cuda_graphs=true", "it is not supported with rollouts"),
        ("learner.target_period_updates=2", "learning from rollouts has no target network"),
        ("env.num_envs=127", "a rollout has equally many steps of each environment"),
        ("learner.batch_size=192", "the minibatches of a rollout must be equal"),
        ("learner.update_period_steps=48", "the number of passes over a rollout"),
        ("network.memory=lstm", 'a recurrent layer learns from sequences: set the second to "sequences"'),
    ],
)
def test_contradiction_is_refused_with_the_reason(override: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(PQN, [override])
    assert message in str(caught.value)


def test_run_without_a_complete_rollout_is_refused() -> None:
    short = ["replay.prefill_steps=1_000", "training.total_frames=15_872"]
    with pytest.raises(SpecError, match=r"replay\.capacity_steps: found 4096 with .*before its first update"):
        load_spec(PQN, short)
    short[1] = "training.total_frames=15_873"  # 3,969 steps, which are 32 rows of 128 environments
    assert load_spec(PQN, short).spec.training.total_frames == 15_873


def test_normalised_nature_network_with_memory_is_refused(write_spec) -> None:
    with pytest.raises(
        SpecError, match=r'network\.kind: found "nature_layer_norm" with network\.memory = "gru"'
    ):
        load_spec(write_spec(), ["network.kind=nature_layer_norm", "network.memory=gru"])


def test_trace_decay_belongs_to_rollouts(write_spec) -> None:
    with pytest.raises(SpecError, match=r'belongs to replay\.kind = "rollouts"'):
        load_spec(write_spec(), ["learner.trace_decay=0.5"])


def test_pqn_is_compared_with_no_score_of_dqn() -> None:
    assert subject_of(load_spec(PQN).spec).agent == "pqn"


def test_rollout_may_be_as_short_as_a_step() -> None:
    sizes = {"replay.capacity_steps": 128, "replay.prefill_steps": 128}
    sizes |= {"learner.batch_size": 32, "learner.update_period_steps": 32}
    shortest = [f"{key}={size}" for key, size in sizes.items()]
    assert load_spec("pqn", shortest).spec.replay.capacity_steps == 128
