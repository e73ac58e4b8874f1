"""The values of Track C, and its three agents on the 26 games."""

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.tracks import load_track

RUNS = Path(__file__).parents[2] / "runs"
AGENTS = ("der", "der_dopamine", "drq_eps")


def spec_of(agent: str, game: str = "pong"):
    return load_spec(RUNS / f"atari100k_{agent}.toml", [f"game={game}"])


def games_of_the_benchmark() -> list[str]:
    """Return the games of Atari 100k."""
    return tomllib.loads(files("atari_dqn.scale").joinpath("game_lists.toml").read_text("utf-8"))[
        "atari_100k_26"
    ]


def test_every_line_of_track_c_says_where_its_value_comes_from():
    text = files("atari_dqn.spec").joinpath("tracks/c.toml").read_text("utf-8")
    lines = [line for line in text.splitlines() if " = " in line and not line.startswith("#")]
    assert len(lines) == len(load_track("C"))
    assert [line for line in lines if "#" not in line] == ['track = "C"']


def test_track_c_has_its_papers_numbers():
    track = load_track("C")
    table = {
        "toggles.n_step": 20,
        "toggles.noisy": True,
        "toggles.distribution": "c51",
        "env.sticky_probability": 0.0,
        "replay.prefill_steps": 1_600,
        "replay.alpha": 0.5,
        "network.kind": "data_efficient",
        "network.hidden_units": 256,
        "network.noisy_sigma": 0.1,
        "learner.update_period_steps": 1,
        "learner.target_period_updates": 2_000,
        "optimizer.learning_rate": 1e-4,
        "training.total_frames": 400_000,
        "evaluation.full_episodes": 100,
    }
    assert {key: track[key] for key in table} == table


@pytest.mark.parametrize("agent", AGENTS)
def test_each_agent_has_the_26_games_and_nothing_else_differs_between_them(agent: str):
    games = games_of_the_benchmark()
    specs = [spec_of(agent, game) for game in games]
    assert len(set(games)) == 26
    assert [resolved.spec.game for resolved in specs] == games
    assert len({resolved.deviations for resolved in specs}) == 1


def test_der_is_the_track_itself():
    assert spec_of("der").deviations == ()


def test_der_in_dopamines_form_has_a_constant_epsilon_with_its_noisy_layers():
    spec = spec_of("der_dopamine").spec
    assert (spec.toggles.noisy, spec.network.noisy_sigma, spec.toggles.n_step) == (True, 0.1, 10)
    assert (spec.exploration.epsilon_start, spec.exploration.epsilon_end) == (0.01, 0.01)
    assert (spec.network.kind, spec.network.hidden_units, spec.network.init) == (
        "dopamine",
        512,
        "xavier_uniform",
    )


@pytest.mark.parametrize("agent", ["der", "der_dopamine"])
def test_data_efficient_rainbow_has_its_codes_priority_the_cross_entropy(agent: str):
    assert spec_of(agent).spec.replay.priority == "cross_entropy"


def test_rainbow_has_the_priority_of_its_text_the_divergence():
    assert load_spec(RUNS / "rainbow.toml").spec.replay.priority == "kl"


def test_c51_without_prioritized_replay_has_no_such_key():
    assert load_spec(RUNS / "c51.toml").spec.replay.priority is None


def test_der_in_dopamines_form_keeps_the_weights_exponent():
    replay = spec_of("der_dopamine").spec.replay
    assert (replay.alpha, replay.beta_start, replay.beta_end) == (0.5, 0.5, 0.5)


def test_drq_learns_values_of_shifted_frames_with_a_target_that_is_copied_at_once():
    spec = spec_of("drq_eps").spec
    assert (spec.toggles.random_shifts, spec.toggles.distribution, spec.toggles.noisy) == (
        True,
        "none",
        False,
    )
    assert (spec.learner.shift_pixels, spec.learner.intensity_scale) == (4, 0.05)
    assert (spec.learner.target_period_updates, spec.learner.loss) == (1, "huber")
    assert (spec.exploration.epsilon_decay_frames, spec.network.kind) == (20_000, "dopamine")


@pytest.mark.parametrize("agent", ["c51", "qr_dqn", "iqn", "m_dqn", "m_iqn", "rainbow"])
@pytest.mark.parametrize("game", ["pong", "breakout", "space_invaders", "seaquest", "qbert"])
def test_each_later_agent_has_one_spec_for_every_game(agent: str, game: str):
    assert load_spec(RUNS / f"{agent}.toml", [f"game={game}"]).spec.game == game
