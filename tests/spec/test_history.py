import re
from pathlib import Path

import pytest

from atari_dqn.cli import spec as spec_command
from atari_dqn.errors import DamagedError
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.tuning.tune_file import load_tune
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.history import ADDED
from atari_dqn.spec.keys import KEYS, flatten
from atari_dqn.spec.loader import load_resolved, load_spec
from atari_dqn.spec.recorded import spec_values
from atari_dqn.spec.render import resolved_toml

RUNS = Path(__file__).parents[2] / "runs"
EARLIER_RUN = Path(__file__).with_name("earlier_run.toml")
EARLIER_PROVENANCE = {"torch_threads": 2}
RESOLVED = ["learner.threads=2", "system.workers=0"]


def test_earlier_spec_loads_with_added_keys_at_values_that_keep_its_behaviour() -> None:
    spec = load_resolved(EARLIER_RUN, EARLIER_PROVENANCE).spec
    assert (spec.learner.accumulate, spec.checkpoint.replay, spec.gates.min_effective_share) == (
        1,
        True,
        0.02,
    )


def test_added_keys_are_no_deviations_of_an_earlier_run() -> None:
    assert not ADDED.keys() & set(load_resolved(EARLIER_RUN, EARLIER_PROVENANCE).deviations)


def test_c51_run_from_before_the_priority_key_uses_the_kl_divergence(
    tmp_path: Path,
) -> None:
    path = tmp_path / "spec.toml"
    complete = resolved_toml(load_spec(RUNS / "atari100k_der.toml", RESOLVED))
    path.write_text("".join(line for line in complete.splitlines(True) if not line.startswith("priority =")))
    assert load_resolved(path).spec.replay.priority == "kl"


def der_of_an_earlier_version(folder: Path, *also_missing: str) -> Path:
    """Write a complete spec of data-efficient Rainbow from before the key of the weights' maximum."""
    path = folder / "der.toml"
    missing = tuple(f"{leaf} =" for leaf in ("weight_maximum", *also_missing))
    lines = resolved_toml(load_spec(RUNS / "atari100k_der.toml", RESOLVED)).splitlines(True)
    path.write_text("".join(line for line in lines if not line.startswith(missing)))
    return path


def test_complete_spec_of_an_earlier_version_keeps_its_algorithm_in_a_new_run(tmp_path: Path) -> None:
    path = der_of_an_earlier_version(tmp_path)
    resolved = load_spec(path, ["seed=2"])
    assert (resolved.spec.replay.weight_maximum, resolved.track_label) == ("replay", "C*")
    assert resolved.deviations == ("replay.weight_maximum",)
    assert load_spec(path).spec == load_resolved(path).spec
    assert load_spec(path, ["replay.weight_maximum=minibatch"]).deviations == ()


def test_spec_that_lacks_an_older_key_too_gets_newer_keys_from_its_track(tmp_path: Path) -> None:
    spec = load_spec(der_of_an_earlier_version(tmp_path, "batch_size")).spec
    assert (spec.replay.weight_maximum, spec.learner.batch_size) == ("minibatch", 32)


def test_complete_spec_may_be_older_than_the_key_of_threads(tmp_path: Path) -> None:
    spec = load_spec(der_of_an_earlier_version(tmp_path, "threads")).spec
    assert (spec.replay.weight_maximum, spec.learner.threads) == ("replay", AUTO)


def test_part_that_an_override_adds_to_a_complete_spec_has_the_values_of_today(tmp_path: Path) -> None:
    spec = load_spec(der_of_an_earlier_version(tmp_path), ["toggles.resets=true"]).spec
    assert spec.learner.reset_period_updates == 40_000


def test_sweeps_and_tunes_of_a_complete_spec_keep_its_algorithm(tmp_path: Path) -> None:
    der_of_an_earlier_version(tmp_path)
    (tmp_path / "sweep.toml").write_text('spec = "der.toml"\nthreads = 2\n')
    (tmp_path / "tune.toml").write_text(
        'spec = "der.toml"\n[space]\nlearner.batch_size = { choice = [16, 32] }\n[budget]\ntrials = 1\n'
    )
    (member,) = load_sweep(tmp_path / "sweep.toml").members()
    assert member.values["replay.weight_maximum"] == "replay"
    assert load_tune(tmp_path / "tune.toml").base["replay.weight_maximum"] == "replay"


def test_existing_run_keeps_decays_that_are_refused_in_a_new_run(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    earlier = resolved_toml(load_spec(RUNS / "pong_trackA.toml", RESOLVED))
    path.write_text(earlier.replace("\ngradient_decay = 0.95", "\ngradient_decay = 0.9"))
    assert load_resolved(path).spec.optimizer.gradient_decay == 0.9


REDO = "redo_period_updates = 1_000\nredo_threshold = 0.025\n"


@pytest.mark.parametrize(
    ("overrides", "replaced"),
    [
        (
            ["replay.kind=sequences", "replay.burn_in_steps=0"],
            {"\nredo = false": "\nredo = true", "[learner]\n": f"[learner]\n{REDO}"},
        ),
        (["toggles.resets=true"], {"\ntotal_frames = 50000000": "\ntotal_frames = 600000"}),
        (
            ["replay.kind=sequences", "replay.burn_in_steps=0"],
            {"\nburn_in_steps = 0": "\nburn_in_steps = 40"},
        ),
        (["env.num_envs=2", "actors.mode=lockstep"], {"\nreplay = true": "\nreplay = false"}),
    ],
    ids=["ReDo on sequences", "no reset in the run", "burn-in without memory", "lockstep without its replay"],
)
def test_existing_run_with_a_combination_that_is_refused_in_a_new_one_is_read(
    tmp_path: Path, overrides: list[str], replaced: dict[str, str]
) -> None:
    path = tmp_path / "spec.toml"
    text = resolved_toml(load_spec(RUNS / "pong_trackA.toml", [*RESOLVED, *overrides]))
    for before, after in replaced.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    path.write_text(text)
    with pytest.raises(SpecError):
        load_spec(path)
    assert load_resolved(path).spec.game == "pong"


def redo_of_an_earlier_version(folder: Path) -> Path:
    """Write a complete spec with ReDo from before the key of its states."""
    path, overrides = folder / "spec.toml", ["toggles.redo=true", "learner.batch_size=48"]
    complete = resolved_toml(load_spec(RUNS / "pong_trackA.toml", [*RESOLVED, *overrides]))
    assert complete.count("redo_states = 256\n") == 1
    path.write_text(complete.replace("redo_states = 256\n", ""))
    return path


def test_redo_of_an_earlier_version_goes_on_with_the_states_of_a_minibatch(tmp_path: Path) -> None:
    path = redo_of_an_earlier_version(tmp_path)
    assert load_resolved(path).spec.learner.redo_states == 48
    assert load_spec(path, ["seed=2"]).spec.learner.redo_states == 48


def test_redo_of_an_earlier_version_keeps_its_digest(tmp_path: Path) -> None:
    path = redo_of_an_earlier_version(tmp_path)
    former = "687850f18b88b8a8"  # as recorded by the last version without the key
    assert spec_digest(load_resolved(path).spec)[:16] == former
    assert spec_digest(load_spec(path, ["learner.redo_states=256"]).spec)[:16] != former


def run_without_exploration(folder: Path) -> Path:
    """Write the spec of a run of Track C without noisy layers and without ε."""
    earlier = resolved_toml(load_spec(RUNS / "atari100k_der.toml", RESOLVED))
    without_noise = earlier.replace("noisy = true", "noisy = false").replace("noisy_sigma = 0.1\n", "")
    path = folder / "spec.toml"
    path.write_text(without_noise)
    return path


def test_existing_run_that_never_explores_is_read(tmp_path: Path) -> None:
    assert load_resolved(run_without_exploration(tmp_path)).spec.toggles.noisy is False


def test_run_that_is_refused_as_a_new_spec_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec_command.show(run_without_exploration(tmp_path).parent)
    assert "\nnoisy = false\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["catch_memory_smoke", "pqn", "bbf_rr2", "apex_small"])
def test_graphs_that_a_run_recorded_without_effect_are_read_as_off(tmp_path: Path, name: str) -> None:
    path = tmp_path / "spec.toml"
    earlier = load_spec(RUNS / f"{name}.toml", RESOLVED)
    path.write_text(resolved_toml(earlier).replace("cuda_graphs = false", "cuda_graphs = true"))
    found = load_resolved(path)
    assert found.spec == earlier.spec
    assert found.spec.system.cuda_graphs is False


@pytest.mark.parametrize(("key", "value"), [("rolling_episodes", 1_000_000), ("screen_size_pixels", 336)])
def test_limit_of_a_size_holds_for_new_specs_alone(tmp_path: Path, key: str, value: int) -> None:
    earlier = resolved_toml(load_spec(RUNS / "catch_smoke.toml", RESOLVED))
    path = tmp_path / "spec.toml"
    path.write_text(re.sub(rf"^{key} = .*$", f"{key} = {value}", earlier, flags=re.MULTILINE))
    assert flatten(load_resolved(path).spec)[f"{'logging' if key[0] == 'r' else 'env'}.{key}"] == value
    with pytest.raises(SpecError, match=rf"{key}: found {value}; expected at most"):
        load_spec(path)


def test_added_keys_are_keys_of_the_schema() -> None:
    assert ADDED.keys() <= KEYS.keys()


def test_missing_key_that_was_not_added_later_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(EARLIER_RUN.read_text().replace("batch_size = 32\n", ""))
    with pytest.raises(SpecError, match=r"learner\.batch_size: missing"):
        load_resolved(path, EARLIER_PROVENANCE)


def test_threads_of_an_earlier_run_are_those_that_its_provenance_recorded() -> None:
    assert load_resolved(EARLIER_RUN, {"torch_threads": 7}).spec.learner.threads == 7


def test_threads_that_a_run_has_neither_in_its_spec_nor_in_its_provenance_are_missing() -> None:
    with pytest.raises(SpecError, match=r"learner\.threads: missing; expected an integer at least 1"):
        load_resolved(EARLIER_RUN, {})


def test_threads_in_the_spec_of_a_run_count_more_than_those_of_its_provenance(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(resolved_toml(load_spec(RUNS / "pong_trackA.toml", RESOLVED)))
    assert load_resolved(path, {"torch_threads": 7}).spec.learner.threads == 2


def test_a_run_with_a_key_under_both_of_its_names_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text("[env]\nnum_envs = 1\nlanes = 8\n")
    with pytest.raises(DamagedError, match=r"env\.num_envs: found twice, under its current"):
        spec_values(path)
