"""The values of Track D."""

from importlib.resources import files
from pathlib import Path

import pytest

from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.tracks import load_track

RUNS = Path(__file__).parents[2] / "runs"
TRACK_D_TEXT = files("atari_dqn.spec").joinpath("tracks/d.toml").read_text("utf-8")
BASE_D = 'track = "D"\ngame = "pong"\nseed = 1\n'


def test_every_line_of_track_d_says_where_its_value_comes_from():
    lines = [line for line in TRACK_D_TEXT.splitlines() if " = " in line and not line.startswith("#")]
    assert len(lines) == len(load_track("D"))
    assert [line for line in lines if "#" not in line] == ['track = "D"']


def test_track_d_has_its_papers_protocol():
    track = load_track("D")
    protocol = {
        "env.num_envs": 256,
        "env.sticky_probability": 0.0,
        "env.noop_max_frames": 30,
        "env.max_episode_frames": 108_000,
        "env.terminal_on_life_loss": False,
        "learner.max_abs_reward": float("inf"),
        "evaluation.max_episode_frames": 108_000,
        "training.total_frames": 10_000_000_000,
    }
    assert {key: track[key] for key in protocol} == protocol


def test_track_d_has_its_papers_numbers():
    # Kapturowski et al. (2019), the appendix's table of hyperparameters
    track = load_track("D")
    table = {
        "toggles.n_step": 5,
        "replay.capacity_steps": 4_000_000,
        "replay.alpha": 0.9,
        "replay.beta_start": 0.6,
        "replay.beta_end": 0.6,
        "learner.discount": 0.997,
        "learner.batch_size": 64,
        "learner.target_period_updates": 2_500,
        "optimizer.kind": "adam",
        "optimizer.learning_rate": 1e-4,
        "optimizer.epsilon": 1e-3,
    }
    assert {key: track[key] for key in table} == table


def test_update_of_track_d_replays_each_step_as_often_as_section_2_3_says():
    # 5 updates/s of 64 sequences of 80 steps; 256 actors of 260 frames/s, 4 frames a step
    learned, played = 5 * 64 * 80, 256 * 260 / 4
    assert load_track("D")["learner.update_period_steps"] == played / 5
    assert learned / played == pytest.approx(1.54, abs=0.01)


def test_apex_has_the_loss_and_the_optimizer_of_its_paper():
    # Horgan et al. (2018): ½ (G − q)², and centred RMSProp. Its ε is inside the root: 1.5e-7 is the 0.01 of
    # Mnih et al. (2015) for gradients that are means over 256.
    spec = load_spec(RUNS / "apex.toml").spec
    optimizer = spec.optimizer
    assert spec.learner.loss == "mse"
    assert (optimizer.kind, optimizer.learning_rate) == ("deepmind_rmsprop", 0.00025 / 4)
    assert (optimizer.gradient_decay, optimizer.squared_gradient_decay) == (0.95, 0.95)
    assert optimizer.epsilon == pytest.approx(0.01 / 256**2, rel=0.02)


@pytest.mark.parametrize(
    ("more", "label"), [("", "D"), ("[toggles]\ndueling = false", "D"), ("[env]\nnum_envs = 8", "D*")]
)
def test_run_of_track_d_is_marked_as_those_of_the_other_tracks(write_spec, more: str, label: str):
    assert load_spec(write_spec(more, base=BASE_D)).track_label == label


def test_key_reference_has_a_column_for_each_track():
    assert KEYS["track"].choices == ("A", "B", "C", "D")
