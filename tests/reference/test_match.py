import dataclasses

import pytest

from atari_dqn.compare.reference import match
from atari_dqn.compare.reference.agents import agent_name
from atari_dqn.compare.reference.match import Subject, references
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.schema import Toggles

TRACK_A = Protocol(
    sticky_probability=0.0, noop_max_frames=30, max_episode_frames=18_000, epsilon=0.05,
    full_action_set=False, frame_skip=4, resize="area", screen_size_pixels=84,
    training_terminal_on_life_loss=True, training_max_abs_reward=1.0, episodes=30, checkpoint="current",
    ale_version="0.12.1", rom_md5="0",
)  # fmt: skip
STICKY = dataclasses.replace(
    TRACK_A, sticky_probability=0.25, noop_max_frames=0, max_episode_frames=108_000, epsilon=0.01,
    training_terminal_on_life_loss=False,
)  # fmt: skip


def studies_of(subject: Subject, env_frames: int) -> dict[str, tuple[str, ...]]:
    return {found.study.name: found.differences for found in references(subject, env_frames)}


def test_score_that_no_cap_cut_has_a_reference_of_its_own_protocol():
    found = match.score("pong", 10_000_000, TRACK_A, cap_reached=False)
    assert (found.study.name, found.differences, found.n) == ("nnabla_dqn", (), 3)


def test_score_that_the_cap_cut_differs_in_it():
    found = match.score("pong", 10_000_000, TRACK_A, cap_reached=True)
    assert found.differences == ("cap 400,000",)


def test_smaller_cap_of_a_source_is_a_difference_though_ours_was_not_reached():
    ours = dataclasses.replace(TRACK_A, max_episode_frames=500_000)
    assert match.score("pong", 10_000_000, ours, cap_reached=False).differences == ("cap 400,000",)


def test_figure_between_two_points_is_interpolated_and_says_between_which():
    found = match.score("pong", 1_500_000, TRACK_A, cap_reached=False)
    at_1m, at_2m = (match.score("pong", frames, TRACK_A) for frames in (1_000_000, 2_000_000))
    assert found.mean == pytest.approx((at_1m.mean + at_2m.mean) / 2)
    assert found.between_frames == (1_000_000, 2_000_000)
    assert at_1m.between_frames is None


@pytest.mark.parametrize("env_frames", [999_999, 200_000_001])
def test_outside_of_the_published_points_a_curve_has_no_figure(env_frames: int):
    found = studies_of(Subject(game="pong", agent="dqn", protocol=TRACK_A), env_frames)
    assert not {"nnabla_dqn", "dopamine_jax"} & set(found)


def test_single_figure_of_other_frames_says_so():
    best = dataclasses.replace(TRACK_A, checkpoint="best")
    found = studies_of(Subject(game="pong", agent="dqn", protocol=best), 50_000_000)
    assert found["mnih2015"] == ("after 200,000,000 frames",)


def test_unpublished_game_has_no_reference():
    assert match.score("catch", 1_000_000, TRACK_A) is None


def test_training_returns_are_never_of_an_evaluation_s_protocol():
    subject = Subject(game="pong", agent="dqn", protocol=STICKY)
    found = studies_of(subject, 1_000_000)
    assert found["dopamine_jax"] == ("returns of training games",)
    assert found["nnabla_dqn"][0] == "sticky 0"


def test_training_returns_are_compared_with_training_returns():
    subject = Subject(game="pong", agent="dqn", protocol=STICKY, measure="training")
    assert studies_of(subject, 1_000_000)["dopamine_tf"] == ()


def test_best_weights_of_a_run_are_compared_with_best_weights_only():
    best = dataclasses.replace(TRACK_A, checkpoint="best")
    found = studies_of(Subject(game="pong", agent="dqn", protocol=best), 200_000_000)
    assert found["mnih2015"] == ()
    assert found["nnabla_dqn"][0] == "current weights"


def test_agent_without_figures_is_compared_with_plain_dqn_and_says_so():
    found = match.score("pong", 1_000_000, TRACK_A, agent="prioritized_ddqn, 3-step", cap_reached=False)
    assert (found.agent, found.differences) == ("dqn", ("agent dqn",))


@pytest.mark.parametrize(
    ("score", "verdict"), [(0.11, "below"), (0.12, "on track"), (11.83, "on track"), (11.84, "above")]
)
def test_verdict_is_by_the_spread_of_the_seeds(score: float, verdict: str):
    assert match.score("pong", 10_000_000, TRACK_A, cap_reached=False).verdict(score) == verdict


def test_no_verdict_on_another_protocol():
    assert match.score("pong", 10_000_000, TRACK_A, cap_reached=True).verdict(-21.0) == ""


def test_no_verdict_by_a_single_printed_number():
    best = Subject(game="pong", agent="dqn", protocol=dataclasses.replace(TRACK_A, checkpoint="best"))
    (paper,) = [found for found in references(best, 200_000_000) if found.study.name == "mnih2015"]
    assert paper.verdict(-21.0) == ""


PLAIN = Toggles(
    double=False,
    dueling=False,
    prioritized=False,
    n_step=1,
    noisy=False,
    distribution="none",
    munchausen=False,
    random_shifts=False,
    self_prediction=False,
    resets=False,
    annealing=False,
    redo=False,
)
ALL = {"double": True, "dueling": True, "prioritized": True}


@pytest.mark.parametrize(
    ("on", "name"),
    [
        ({}, "dqn"),
        (ALL, "prioritized_dueling_ddqn"),
        ({"double": True, "prioritized": True, "n_step": 3}, "prioritized_ddqn, 3-step"),
        ({"distribution": "c51"}, "c51"),
        ({"distribution": "qr_dqn", "n_step": 3}, "qr_dqn, 3-step"),
        ({"munchausen": True}, "m_dqn"),
        ({"munchausen": True, "distribution": "iqn"}, "m_iqn"),
        ({"noisy": True}, "noisy_dqn"),
        ({"noisy": True, "distribution": "c51"}, "dqn, c51, noisy"),
        (ALL | {"noisy": True, "distribution": "c51", "n_step": 3}, "rainbow"),
        (ALL | {"noisy": True, "distribution": "c51", "n_step": 20}, "rainbow, 20-step"),
        (ALL | {"noisy": True, "distribution": "c51"}, "rainbow, 1-step"),
        (ALL | {"distribution": "iqn", "n_step": 3}, "prioritized_dueling_ddqn, iqn, 3-step"),
    ],
)
def test_toggles_have_the_literature_s_name(on: dict[str, object], name: str):
    assert agent_name(dataclasses.replace(PLAIN, **on)) == name
