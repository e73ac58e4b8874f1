"""Tracks, parts, and deviations from a track."""

import tomllib
from importlib.resources import files

import pytest

from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.tracks import (
    ABSENT_FROM_TRACKS,
    Part,
    complete_track,
    load_parts,
    load_track,
    override_track,
)

TRACK_A_TEXT = files("atari_dqn.spec").joinpath("tracks/a.toml").read_text("utf-8")


def test_track_a_gives_every_key_that_applies_but_game_and_seed():
    track = load_track("A")
    of_other_parts = {
        f"optimizer.{leaf}" for leaf in ("beta1", "beta2", "weight_decay", "smoothing", "momentum")
    } | {
        *(f"replay.{leaf}" for leaf in ("alpha", "beta_start", "beta_end", "priority_offset", "priority")),
        "replay.weight_maximum",
        "gates.min_effective_share",
    }
    of_other_parts |= {
        *(f"distribution.{leaf}" for leaf in ("num_atoms", "v_min", "v_max", "num_quantiles")),
        *(f"distribution.num_{leaf}fractions" for leaf in ("", "target_", "policy_")),
        *(f"learner.munchausen_{leaf}" for leaf in ("scale", "temperature", "lowest", "network")),
        *("learner.shift_pixels", "learner.intensity_scale"),
        *("network.width", "network.noisy_sigma", "network.shared_hidden"),
        *("learner.self_prediction_steps", "learner.self_prediction_weight"),
        *(f"learner.reset_{leaf}" for leaf in ("period_updates", "last_updates", "keep", "perturb")),
        *("learner.annealing_updates", "learner.n_step_start", "learner.discount_start"),
        *(f"learner.redo_{leaf}" for leaf in ("period_updates", "threshold", "states")),
        *("exploration.spectrum_base", "exploration.spectrum_exponent"),
        *("network.memory_units", "network.memory_inputs"),
        *(f"replay.{leaf}" for leaf in ("sequence_steps", "burn_in_steps", "sequence_period_steps")),
        *("replay.stored_state", "replay.priority_mix"),
        *("learner.sequence_reduction", "learner.value_rescaling"),
        *(f"network.{leaf}" for leaf in ("spectral_norm", "pool_size", "layer_norm")),
        *("distribution.sigma_bins", "learner.trace_decay"),
        *(name for name in KEYS if name.startswith("actors.") and name != "actors.mode"),
        "system.actors_per_core",
    }
    assert set(KEYS) - set(track) == {"game", "seed"} | of_other_parts


@pytest.mark.fault("W06")
@pytest.mark.parametrize("key", list(load_track("A")))
def test_a_key_taken_out_of_a_track_is_an_error_that_names_it(key: str):
    table = tomllib.loads(TRACK_A_TEXT)
    section, _, leaf = key.rpartition(".")
    del (table[section] if section else table)[leaf]
    with pytest.raises(SpecError, match=r"missing") as caught:
        complete_track(table, where="tracks/a.toml")
    assert key in [fault.key for fault in caught.value.faults]


def test_a_key_too_many_in_a_track_is_an_error_that_names_it():
    table = tomllib.loads(TRACK_A_TEXT)
    table["optimizer"]["beta1"] = 0.9
    with pytest.raises(SpecError, match=r"optimizer\.beta1: belongs to"):
        complete_track(table, where="tracks/a.toml")


@pytest.mark.fault("D-ok.target")
def test_track_a_has_the_papers_numbers():
    # Mnih et al. (2015), Extended Data Table 1
    track = load_track("A")
    table = {
        "learner.batch_size": 32,
        "replay.capacity_steps": 1_000_000,
        "env.stack_frames": 4,
        "learner.target_period_updates": 10_000,
        "learner.discount": 0.99,
        "env.frame_skip": 4,
        "learner.update_period_steps": 4,
        "optimizer.learning_rate": 0.00025,
        "optimizer.gradient_decay": 0.95,
        "optimizer.squared_gradient_decay": 0.95,
        "optimizer.epsilon": 0.01,
        "exploration.epsilon_start": 1.0,
        "exploration.epsilon_end": 0.1,
        "exploration.epsilon_decay_frames": 1_000_000,
        "replay.prefill_steps": 50_000,
        "env.noop_max_frames": 30,
    }
    assert {key: track[key] for key in table} == table


def test_every_line_of_track_a_says_where_its_value_comes_from():
    lines = [line for line in TRACK_A_TEXT.splitlines() if " = " in line and not line.startswith("#")]
    assert len(lines) == len(load_track("A"))
    assert [line for line in lines if "#" not in line] == ['track = "A"']


def test_choosing_adam_sets_its_learning_rate_epsilon_and_betas(write_spec):
    optimizer = load_spec(write_spec('[optimizer]\nkind = "adam"')).spec.optimizer
    assert (optimizer.learning_rate, optimizer.epsilon) == (6.25e-5, 1.5e-4)
    assert (optimizer.beta1, optimizer.beta2) == (0.9, 0.999)
    assert (optimizer.gradient_decay, optimizer.squared_gradient_decay) == (None, None)


def test_written_value_overrides_that_of_the_chosen_part(write_spec):
    optimizer = load_spec(write_spec('[optimizer]\nkind = "adam"\nlearning_rate = 1e-3')).spec.optimizer
    assert (optimizer.learning_rate, optimizer.epsilon) == (1e-3, 1.5e-4)


def test_writing_the_tracks_own_choice_of_part_keeps_the_tracks_values():
    track = {**load_track("A"), "optimizer.epsilon": 0.5}
    values = override_track(track, load_parts(), {"optimizer.kind": "deepmind_rmsprop"})
    assert values["optimizer.epsilon"] == 0.5


def test_part_that_is_chosen_by_another_part_sets_its_values():
    first = Part(key="toggles.double", value=True, values={"optimizer.kind": "adam"})
    values = override_track(load_track("A"), (first, *load_parts()), {"toggles.double": True})
    assert values["optimizer.beta1"] == 0.9


def test_each_part_has_a_value_for_every_key_that_depends_on_it():
    for part in load_parts():
        own = {
            name
            for name, key in KEYS.items()
            if any(when.key == part.key and when.holds(part.value) for when in key.when)
        }
        assert own <= set(part.values), part


def test_every_value_that_a_key_is_conditional_on_has_a_part():
    parts = load_parts()
    for when in {when for key in KEYS.values() for when in key.when}:
        assert any(part.key == when.key and when.holds(part.value) for part in parts), when


def test_absent_from_tracks_are_top_level_keys():
    assert {KEYS[key].section for key in ABSENT_FROM_TRACKS} == {""}


DEVIATIONS = {
    "nothing": ("", "A", ()),
    "a toggle": ("[toggles]\ndouble = true\nn_step = 3", "A", ()),
    "a system key": ("[system]\nworkers = 2", "A", ()),
    "the track's own value": ("[learner]\nbatch_size = 32", "A", ()),
    "another value": ("[learner]\nbatch_size = 64", "A*", ("learner.batch_size",)),
    "a part": ('[optimizer]\nkind = "adam"', "A*", ("optimizer.kind",)),
    "a part and its own value": ('[optimizer]\nkind = "adam"\nbeta1 = 0.9', "A*", ("optimizer.kind",)),
    "a part and another value": (
        '[optimizer]\nkind = "adam"\nlearning_rate = 0.00025',
        "A*",
        ("optimizer.kind", "optimizer.learning_rate"),
    ),
    "two sections": (
        "[learner]\nbatch_size = 64\n[env]\nnum_envs = 8",
        "A*",
        ("env.num_envs", "learner.batch_size"),
    ),
}


@pytest.mark.parametrize(("more", "label", "deviations"), DEVIATIONS.values(), ids=DEVIATIONS.keys())
def test_deviating_run_has_a_star_and_lists_the_deviating_keys(write_spec, more, label, deviations):
    resolved = load_spec(write_spec(more))
    assert (resolved.track_label, resolved.deviations) == (label, deviations)


def test_game_and_seed_are_no_deviations(write_spec):
    assert load_spec(write_spec(), ["game=qbert", "seed=7"]).track_label == "A"
