"""Round trips through TOML, digests, and differences of specs."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from atari_dqn.spec.constraints import AUTO, AtLeast, Below, MoreThan, Within
from atari_dqn.spec.diff import Difference, diff_specs
from atari_dqn.spec.digest import canonical_json, spec_digest
from atari_dqn.spec.docs import key_docs
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.keys import AUTO_KEYS, KEYS, Key, Scalar, build, flatten
from atari_dqn.spec.loader import ResolvedSpec, load_resolved, load_spec
from atari_dqn.spec.render import resolved_toml
from atari_dqn.spec.tracks import load_track

RUNS_FOLDER = Path(__file__).parents[2] / "runs"
MINIMAL = RUNS_FOLDER / "pong_trackA.toml"
RUNS = sorted(path for path in RUNS_FOLDER.rglob("*.toml") if path.parent.name not in ("sweeps", "tune"))
RESOLVED = [
    "learner.precision=fp32", "learner.threads=2", "learner.compile=false", "system.workers=0"
]  # fmt: skip
"""The spec of a run has a value for every key that may be `auto`."""


def reload(resolved: ResolvedSpec, folder: Path) -> ResolvedSpec:
    path = folder / f"{resolved.name}.toml"
    path.write_text(resolved_toml(resolved), encoding="utf-8")
    assert load_spec(path) == load_resolved(path)
    return load_resolved(path)


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_every_spec_of_the_repository_survives_a_round_trip_through_toml(path: Path, tmp_path: Path):
    resolved = load_spec(path, RESOLVED)
    assert reload(resolved, tmp_path) == resolved
    assert resolved_toml(reload(resolved, tmp_path)) == resolved_toml(resolved)


TRACK_A_RUNS = ("pong", "breakout", "space_invaders", "seaquest", "qbert")


@pytest.mark.parametrize("game", TRACK_A_RUNS)
def test_track_a_specs_have_no_deviation(game: str):
    resolved = load_spec(RUNS_FOLDER / f"{game}_trackA.toml")
    assert (resolved.spec.game, resolved.track_label) == (game, "A")


def test_lua_spec_differs_in_five_keys():
    resolved = load_spec(RUNS_FOLDER / "pong_trackA_lua.toml")
    assert diff_specs(load_spec(MINIMAL).spec, resolved.spec) == (
        Difference("env.resize", "area", "bilinear"),
        Difference("env.life_loss_ends_skip", False, True),
        Difference("exploration.epsilon_decay_frames", 1_000_000, 4_000_000),
        Difference("learner.target_period_updates", 10_000, 2_500),
        Difference("training.total_frames", 50_000_000, 200_000_000),
    )


def test_keys_that_may_be_auto_are_all_resolved_above():
    assert [setting.partition("=")[0] for setting in RESOLVED] == list(AUTO_KEYS)


def smallest(key: Key) -> float:
    return max([bound.low for bound in key.bounds if isinstance(bound, AtLeast | MoreThan | Within)])


def values_of(key: Key) -> st.SearchStrategy[Any]:
    """Sample from the whole range of a key if it is narrow, otherwise from around the track's value."""
    if key.choices:
        return st.sampled_from(key.choices)
    if key.kind is bool:
        return st.booleans()
    if key.kind is int:
        value = load_track("A").get(key.name, 1)
        usual = 1 if value == AUTO else int(value)
        return st.integers(int(smallest(key)), max(2 * usual, usual + 2))
    high = 1.0 if any(isinstance(bound, Within | Below) for bound in key.bounds) else None
    # a process that has called `flush_denormals` treats subnormal numbers as 0
    floats = st.floats(smallest(key), high, allow_nan=False, allow_subnormal=False)
    return floats.filter(lambda value: all(bound.holds(value) for bound in key.bounds))


OVERRIDDEN = [name for name in KEYS if name not in ("track", "game", "env.kind")]
OVERRIDES = st.lists(st.sampled_from(OVERRIDDEN), max_size=4, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: values_of(KEYS[name]) for name in names})
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(OVERRIDES)
def test_any_valid_spec_survives_a_round_trip_through_toml(tmp_path_factory, overrides: dict[str, Scalar]):
    written = [f"{key}={str(value).lower()}" for key, value in overrides.items()]
    try:
        resolved = load_spec(MINIMAL, [*RESOLVED, *written])
    except SpecError as error:
        # Each value is in its key's range, so only combinations can be invalid.
        others = [fault for fault in error.faults if not re.search(" with |belongs to", fault.problem)]
        assert others == []
        assume(False)
    values = flatten(resolved.spec)
    assert {key: values[key] for key in overrides} == overrides
    assert reload(resolved, tmp_path_factory.mktemp("spec")) == resolved


def test_resolved_toml_has_every_key_that_applies():
    text = resolved_toml(load_spec(MINIMAL))
    table = load_track("A")
    assert sum(" = " in line for line in text.splitlines() if not line.startswith("#")) == len(table) + 2


def test_resolved_toml_names_the_track_and_the_deviating_keys():
    text = resolved_toml(load_spec(MINIMAL, ["learner.batch_size=64", "env.num_envs=2"]))
    assert "# Track A*; keys that deviate: env.num_envs, learner.batch_size.\n" in text
    assert "# Track A; keys that deviate: none.\n" in resolved_toml(load_spec(MINIMAL))


def test_documented_toml_loads_to_the_same_spec(tmp_path: Path):
    resolved = load_spec(MINIMAL, RESOLVED)
    path = tmp_path / MINIMAL.name
    path.write_text(resolved_toml(resolved, documented=True), encoding="utf-8")
    assert load_resolved(path) == resolved
    assert "# Transitions in a minibatch, or sequences.\nbatch_size = 32\n" in path.read_text(
        encoding="utf-8"
    )


def test_missing_key_of_a_resolved_spec_is_not_taken_from_the_track(tmp_path: Path):
    path = tmp_path / "spec.toml"
    text = resolved_toml(load_spec(MINIMAL, RESOLVED)).replace("batch_size = 32\n", "")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=r"learner\.batch_size: missing; expected an integer at least 1"):
        load_resolved(path)


def test_short_spec_does_not_load_as_a_resolved_one():
    with pytest.raises(SpecError, match=r"env\.num_envs: missing"):
        load_resolved(MINIMAL)


def changed(name: str, value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return not value
    return value + "x" if isinstance(value, str) else value + 1


def with_changed(values: dict[str, Scalar], name: str) -> str:
    return spec_digest(build({**values, name: changed(name, values[name])}))


@pytest.mark.parametrize("kind", ["deepmind_rmsprop", "adam"])
def test_digest_changes_with_every_key_that_can_change_results(kind: str):
    spec = load_spec(MINIMAL, [f"optimizer.kind={kind}", "learner.max_grad_norm=10"]).spec
    values = flatten(spec)
    same = {name for name in values if with_changed(values, name) == spec_digest(spec)}
    free = {name for name in values if name.startswith(("system.", "gates."))}
    assert same == free | {"checkpoint.period_frames", "checkpoint.period_seconds"}


def test_every_key_applies_under_some_choice_of_parts():
    kinds = ("optimizer.kind", "network.kind", "toggles.distribution")
    choices = [f"{name}={kind}" for name in kinds for kind in KEYS[name].choices]
    spectrum = ["exploration.kind=spectrum", "env.num_envs=2"]
    further = ("self_prediction", "resets", "annealing", "redo")
    toggles = [
        f"toggles.{name}=true"
        for name in ("dueling", "prioritized", "noisy", "munchausen", "random_shifts", *further)
    ]
    both = ["toggles.prioritized=true", "toggles.distribution=c51"]
    sequences = ["network.memory=lstm", "toggles.prioritized=true"]
    rollouts = ["replay.kind=rollouts", "env.num_envs=128"]
    actors = ["actors.mode=free_running", "env.num_envs=2"]
    together = (both, spectrum, sequences, rollouts, actors)
    specs = [
        load_spec(MINIMAL, chosen).spec
        for chosen in (*([choice] for choice in (*choices, *toggles)), *together)
    ]
    assert set().union(*(flatten(spec) for spec in specs)) == set(KEYS)


def test_canonical_json_sorts_keys_and_writes_infinity_as_a_string():
    values: dict[str, Scalar] = {"b": float("inf"), "a.z": 1.0, "a.b": True, "c": "ε", "d": 6.25e-5}
    assert canonical_json(values) == '{"a.b":true,"a.z":1.0,"b":"inf","c":"ε","d":6.25e-05}'


def test_notation_of_a_number_does_not_change_the_digest():
    a = load_spec(MINIMAL, ["learner.max_grad_norm=10", "env.sticky_probability=-0.0"]).spec
    b = load_spec(MINIMAL, ["learner.max_grad_norm=1e1", "env.sticky_probability=0"]).spec
    assert spec_digest(a) == spec_digest(b)


@pytest.mark.fault("D22")
def test_specs_that_do_not_differ_have_no_differences():
    spec = load_spec(MINIMAL).spec
    assert diff_specs(spec, dataclasses.replace(spec)) == ()


def test_a_key_that_only_one_spec_has_is_a_difference():
    a, b = load_spec(MINIMAL).spec, load_spec(MINIMAL, ["optimizer.kind=adam"]).spec
    assert Difference("optimizer.beta1", None, 0.9) in diff_specs(a, b)
    assert Difference("optimizer.gradient_decay", 0.95, None) in diff_specs(a, b)
    assert {difference.key for difference in diff_specs(a, b)} == {
        "optimizer.kind",
        "optimizer.learning_rate",
        "optimizer.epsilon",
        "optimizer.gradient_decay",
        "optimizer.squared_gradient_decay",
        "optimizer.beta1",
        "optimizer.beta2",
        "optimizer.weight_decay",
    }


def test_documented_keys_are_the_keys_of_the_schema():
    assert set(key_docs()) == set(KEYS)
    assert all(len(doc) > 5 for doc in key_docs().values())
