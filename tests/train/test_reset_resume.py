"""A run with resets, killed one update before or after one, goes on exactly as it would have."""

import copy
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
import torch
from tiny import CPU, begun, ticks_of, tiny, tiny_spec
from torch import Tensor

from atari_dqn.actors.inline import InlineActors
from atari_dqn.agent.redo import ReDo
from atari_dqn.rng import torch_seed
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.spec.loader import load_resolved
from atari_dqn.spec.render import resolved_toml
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

REDO = (
    "toggles.redo=true", "learner.redo_period_updates=7", "learner.redo_threshold=0.3",
    "learner.redo_states=40",
)  # fmt: skip
LOCKSTEP = (
    "env.num_envs=2", "actors.mode=lockstep", "actors.fragment_steps=6", "actors.sync_period_steps=12",
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
    resumed, uninterrupted = digests_of(tiny_spec(*SPEC, "toggles.self_prediction=false", *REDO), 6)
    assert resumed == uninterrupted


def states_of(training) -> Tensor:
    """Return the states of the search for dormant units after seven updates."""
    (redo,) = (each for each in training.learner.upkeep if isinstance(each, ReDo))
    return redo.frames(7)


@pytest.mark.parametrize("sampling", ["uniform", "prioritized", "grouped"])
def test_dormant_units_are_searched_for_in_as_many_states_as_the_key_says(sampling: str) -> None:
    further = {"prioritized": ("toggles.prioritized=true",), "grouped": LOCKSTEP}.get(sampling, ())
    with closing(assemble(tiny_spec(*REDO, *further), CPU, InlineActors)) as training:
        training.begin()
        list(islice(training.iterations(), 70))
        assert states_of(training).shape == (40, 4, 36, 36)


def test_run_from_before_the_key_searches_in_the_states_of_a_minibatch(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(resolved_toml(tiny(*REDO)).replace("redo_states = 40\n", ""))
    spec = load_resolved(path).spec
    with begun(spec) as training:
        ticks_of(training, 70)
        index, weight = training.replay.sample_for_diagnostics(
            1, env_frames=280, seed=torch_seed(spec.seed, "redo states", 7)
        )
        minibatch = training.replay.minibatch(index[0], weight[0])
        assert torch.equal(states_of(training), minibatch.s_tm1)
        assert len(minibatch.s_tm1) == 8


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


@pytest.mark.parametrize("updates_ago", [0, 1])
def test_recent_minibatch_has_the_horizon_of_its_update(
    updates_ago: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begun(tiny_spec(*SPEC)) as training:
        step, learned = training.learner.gradient_step, []
        monkeypatch.setattr(
            training.learner, "gradient_step", lambda batch: (learned.append(batch), step(batch))[1]
        )
        reached(training, 3)
        gathered = training.recent.gather(updates_ago)
        assert gathered is not None
        assert torch.equal(gathered.discount_t, learned[-1 - updates_ago].discount_t)


def test_gathering_a_recent_minibatch_leaves_the_horizon_as_it_is() -> None:
    with begun(tiny_spec(*SPEC)) as training:
        reached(training, 3)
        before = training.replay.n_step, training.replay.gamma
        training.recent.gather()
        assert (training.replay.n_step, training.replay.gamma) == before


def test_evaluations_are_played_by_the_network_that_acts() -> None:
    with begun(tiny_spec(*SPEC)) as training:
        assert training.actor.network is training.learner.target
    with begun(tiny_spec()) as training:
        assert training.actor.network is training.learner.online


def test_updates_of_a_step_are_as_many_as_the_ratio_says() -> None:
    with begun(tiny_spec("learner.updates_per_period=3", "learner.update_period_steps=2")) as training:
        iterations = ticks_of(training, 100)
    assert {iteration.updates for iteration in iterations[70:]} == {0, 3}
