"""A run with resets, killed one update before or after one, goes on exactly as it would have."""

import copy
from contextlib import closing

import pytest
from tiny import CPU, begun, ticks_of, tiny_spec

from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.train.build import assemble

RESET_AT = 8
SPEC = (
    "toggles.self_prediction=true", "toggles.random_shifts=true", "toggles.resets=true",
    "toggles.annealing=true", "learner.annealing_updates=5", "learner.n_step_start=4",
    f"learner.reset_period_updates={RESET_AT}", "learner.reset_last_updates=16",
    "learner.updates_per_period=1", "learner.update_period_steps=1", "learner.target_period_updates=1",
    "learner.target_rate=0.1", "learner.acting_network=target", "optimizer.kind=adam",
    "optimizer.weight_decay=0.1", "learner.reduction=mean", "training.total_frames=340",
    "exploration.epsilon_start=0.1", "network.hidden_units=32",
)  # fmt: skip


def reached(training, updates: int) -> None:
    while training.clock.updates < updates:
        ticks_of(training, 1)


def digests_of(spec, updates: int) -> tuple[str, str]:
    """Return the digests of a training that was resumed after `updates`, and of one that was not."""
    with begun(spec) as training:
        reached(training, updates)
        assert training.learner.updates == updates
        saved = copy.deepcopy(training.state_dict())
        ticks_of(training)
        uninterrupted = tree_digest(training.state_dict())
        assert training.learner.updates > 2 * RESET_AT
    with closing(assemble(spec, CPU)) as resumed:
        resumed.load_state_dict(saved)
        ticks_of(resumed)
        return tree_digest(resumed.state_dict()), uninterrupted


@pytest.mark.fault("W03")
@pytest.mark.parametrize(
    "updates", [RESET_AT, *(pytest.param(RESET_AT + each, marks=pytest.mark.slow) for each in (-1, 1))]
)
def test_run_resumed_around_a_reset_is_the_uninterrupted_one(updates: int) -> None:
    resumed, uninterrupted = digests_of(tiny_spec(*SPEC), updates)
    assert resumed == uninterrupted


@pytest.mark.slow
def test_run_resumed_between_updates_of_one_step_is_the_uninterrupted_one() -> None:
    spec = tiny_spec(*SPEC, "learner.updates_per_period=3", "learner.reset_period_updates=7")
    resumed, uninterrupted = digests_of(spec, 9)
    assert resumed == uninterrupted


def test_run_resumed_around_recycled_units_is_the_uninterrupted_one() -> None:
    redo = ("toggles.redo=true", "learner.redo_period_updates=7", "learner.redo_threshold=0.3")
    resumed, uninterrupted = digests_of(tiny_spec(*SPEC, "toggles.self_prediction=false", *redo), 6)
    assert resumed == uninterrupted


def test_horizon_is_annealed_from_the_reset_on() -> None:
    with begun(tiny_spec(*SPEC)) as training:
        found = []
        for updates in range(1, 2 * RESET_AT):
            reached(training, updates)
            found.append(training.replay.n_step)
    # 4 · ¼^(k / 5), rounded, k updates after the last reset; what is listed is the n of the next update
    assert found == [3, 2, 2, 1, 1, 1, 1, 4, 3, 2, 2, 1, 1, 1, 1]


def test_loaded_training_has_the_horizon_of_its_next_update() -> None:
    spec = tiny_spec(*SPEC)
    with begun(spec) as training, closing(assemble(spec, CPU)) as resumed:
        reached(training, 2)
        resumed.load_state_dict(copy.deepcopy(training.state_dict()))
        assert (resumed.replay.n_step, resumed.replay.gamma) == (
            training.replay.n_step,
            training.replay.gamma,
        )
        assert resumed.replay.n_step == 2


def test_evaluations_are_played_by_the_network_that_acts() -> None:
    with begun(tiny_spec(*SPEC)) as training:
        assert training.actor.network is training.learner.target
    with begun(tiny_spec()) as training:
        assert training.actor.network is training.learner.online


def test_updates_of_a_step_are_as_many_as_the_ratio_says() -> None:
    with begun(tiny_spec("learner.updates_per_period=3", "learner.update_period_steps=2")) as training:
        iterations = ticks_of(training, 100)
    assert {iteration.updates for iteration in iterations[70:]} == {0, 3}
