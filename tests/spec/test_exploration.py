"""The two kinds of exploration in a spec."""

from pathlib import Path

import pytest

from atari_dqn.schedule import EpsilonSpectrum, LinearSchedule
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.exploration import exploration_of, mixed_epsilon
from atari_dqn.spec.loader import load_spec

RUNS = Path(__file__).parents[2] / "runs"
SPECTRUM = ["exploration.kind=spectrum", "env.num_envs=8"]
BASE_D = 'track = "D"\ngame = "pong"\nseed = 1\n'


def test_spectrum_has_its_papers_values(write_spec):
    exploration = exploration_of(load_spec(write_spec(), SPECTRUM).spec)
    assert exploration == EpsilonSpectrum(base=0.4, exponent=7.0, num_envs=8)


def test_track_d_has_a_spectrum_over_its_environments(write_spec):
    exploration = exploration_of(load_spec(write_spec(base=BASE_D)).spec)
    assert exploration == EpsilonSpectrum(base=0.4, exponent=7.0, num_envs=256)


def test_linear_exploration_on_track_d_has_its_papers_values(write_spec):
    exploration = exploration_of(load_spec(write_spec(base=BASE_D), ["exploration.kind=linear"]).spec)
    assert exploration == LinearSchedule(start=1.0, end=0.1, decay_frames=1_000_000)


def test_noisy_layers_on_track_d_with_linear_exploration_have_no_epsilon(write_spec):
    plain = ["network.memory=none", "replay.kind=transitions"]
    overrides = ["exploration.kind=linear", "toggles.noisy=true", *plain]
    exploration = load_spec(write_spec(base=BASE_D), overrides).spec.exploration
    assert (exploration.epsilon_start, exploration.epsilon_end) == (0.0, 0.0)


def test_epsilon_is_a_mix_with_a_spectrum_only(write_spec):
    linear, spectrum = (exploration_of(load_spec(write_spec(), keys).spec) for keys in ([], SPECTRUM))
    assert (mixed_epsilon(linear), mixed_epsilon(spectrum)) == ("", "ε 0.4 to 0.00066")


REFUSED = {
    "one environment": (["exploration.kind=spectrum"], "needs several environments"),
    # 0.4^(1 + 1) = 0.16
    "no greedy environment": ([*SPECTRUM, "exploration.spectrum_exponent=1"], "must be greedy enough"),
    "noisy layers": ([*SPECTRUM, "toggles.noisy=true"], "noisy layers replace ε-greedy exploration"),
    "a key of the other kind": ([*SPECTRUM, "exploration.epsilon_end=0.1"], "belongs to exploration.kind"),
}


@pytest.mark.parametrize(("overrides", "problem"), REFUSED.values(), ids=REFUSED)
def test_contradiction_with_a_spectrum_is_refused(write_spec, overrides: list[str], problem: str):
    with pytest.raises(SpecError, match=problem):
        load_spec(write_spec(), overrides)


def test_base_of_a_tenth_is_greedy_enough_without_an_exponent(write_spec):
    # ε of the last environment is 0.1^(1 + 0), the largest that is allowed
    overrides = [*SPECTRUM, "exploration.spectrum_base=0.1", "exploration.spectrum_exponent=0"]
    assert load_spec(write_spec(), overrides).spec.exploration.spectrum_base == 0.1


@pytest.mark.parametrize("name", ["atari100k_der", "pong_trackA"])
def test_agent_that_never_explores_is_refused_with_the_keys_to_set(name: str):
    greedy = ["toggles.noisy=false", "exploration.epsilon_start=0", "exploration.epsilon_end=0"]
    problem = r"toggles\.noisy: found false .*epsilon_start=1\.0, .* and evaluation\.epsilon=0\.001"
    with pytest.raises(SpecError, match=problem):
        load_spec(RUNS / f"{name}.toml", greedy)


def test_noisy_layers_of_track_c_are_turned_off_with_the_keys_that_the_error_names():
    named = ["exploration.epsilon_start=1.0", "exploration.epsilon_end=0.01", "evaluation.epsilon=0.001"]
    spec = load_spec(RUNS / "atari100k_der.toml", ["toggles.noisy=false", *named]).spec
    assert exploration_of(spec) == LinearSchedule(start=1.0, end=0.01, decay_frames=8_000)


def test_evaluation_without_noise_may_be_greedy(write_spec):
    assert load_spec(write_spec(), ["evaluation.epsilon=0"]).spec.evaluation.epsilon == 0


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("pong_trackA", "7a8d865f0cf4ce94"),
        ("atari100k_der", "bd2a4cbdbc6b8b58"),
        ("catch_smoke", "b7ffd7a45253f446"),
    ],
)
def test_spec_that_uses_no_new_key_keeps_its_digest(name: str, digest: str):
    assert spec_digest(load_spec(RUNS / f"{name}.toml").spec)[:16] == digest


@pytest.mark.parametrize("override", ["env.flicker_probability=0.5", "exploration.kind=spectrum"])
def test_new_key_that_is_used_changes_the_digest(override: str):
    plain, other = (
        load_spec(RUNS / "pong_trackA.toml", ["env.num_envs=8", *more]).spec for more in ([], [override])
    )
    assert spec_digest(other) != spec_digest(plain)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["exploration.epsilon_off_frames=100_000"], "without noisy layers only ε explores"),
        (
            ["toggles.noisy=true", "exploration.epsilon_start=0.0", "exploration.epsilon_end=0.0",
             "exploration.epsilon_off_frames=100_000"],
            "ε is 0 anyway",
        ),
    ],
)  # fmt: skip
def test_switch_of_epsilon_that_is_none_is_refused(write_spec, overrides: list[str], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        load_spec(write_spec(), overrides)


@pytest.mark.parametrize("key", ["full_episodes", "light_episodes"])
def test_more_games_than_memory_holds_are_refused(write_spec, key: str) -> None:
    with pytest.raises(SpecError, match="at most 1,000,000"):
        load_spec(write_spec(), [f"evaluation.{key}=1_000_000_000"])
