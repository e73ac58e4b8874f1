import dataclasses

import pytest

from atari_dqn.compare.reference.match import Reference, Subject, figure_at, nearest, references
from atari_dqn.compare.reference.studies import Figure, studies
from atari_dqn.spec.protocol import Protocol

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
RAINBOW_OF_DOPAMINE = "prioritized_dqn, c51, 3-step"


def published(
    game: str, env_frames: int, protocol: Protocol, *, agent: str = "dqn", cap_reached: bool = True
) -> Reference | None:
    return nearest(
        Subject(is_averaged=True, game=game, agent=agent, protocol=protocol),
        env_frames,
        cap_reached=cap_reached,
    )


def studies_of(subject: Subject, env_frames: int) -> dict[str, tuple[str, ...]]:
    return {found.study.name: found.differences for found in references(subject, env_frames)}


def test_score_that_no_cap_cut_has_a_reference_of_its_own_protocol():
    found = published("pong", 10_000_000, TRACK_A, cap_reached=False)
    assert (found.study.name, found.differences, found.n) == ("nnabla_dqn", (), 3)


def test_score_that_the_cap_cut_differs_in_it():
    found = published("pong", 10_000_000, TRACK_A, cap_reached=True)
    assert found.differences == ("cap 400,000",)


def test_smaller_cap_of_a_source_is_a_difference_though_ours_was_not_reached():
    ours = dataclasses.replace(TRACK_A, max_episode_frames=500_000)
    assert published("pong", 10_000_000, ours, cap_reached=False).differences == ("cap 400,000",)


def test_figure_between_two_points_is_interpolated_and_says_between_which():
    found = published("pong", 1_500_000, TRACK_A, cap_reached=False)
    at_1m, at_2m = (published("pong", frames, TRACK_A) for frames in (1_000_000, 2_000_000))
    assert found.mean == pytest.approx((at_1m.mean + at_2m.mean) / 2)
    assert found.between_frames == (1_000_000, 2_000_000)
    assert at_1m.between_frames is None


def test_figure_between_two_points_has_the_fewer_seeds_and_is_nearer_to_the_nearer_point():
    left = Figure(
        study="a", agent="dqn", game="pong", env_frames=1_000_000, mean=0.0, lowest=-4.0, highest=4.0, n=3
    )
    right = dataclasses.replace(left, env_frames=2_000_000, mean=8.0, lowest=4.0, highest=16.0, n=2)
    between = dataclasses.replace(left, env_frames=1_250_000, mean=2.0, lowest=-2.0, highest=7.0, n=2)
    assert figure_at((left, right), 1_250_000) == (between, (1_000_000, 2_000_000))


@pytest.mark.parametrize("env_frames", [999_999, 200_000_001])
def test_outside_of_the_published_points_a_curve_has_no_figure(env_frames: int):
    found = studies_of(Subject(is_averaged=True, game="pong", agent="dqn", protocol=TRACK_A), env_frames)
    assert not {"nnabla_dqn", "dopamine_jax"} & set(found)


def test_single_figure_of_other_frames_says_so():
    best = dataclasses.replace(TRACK_A, checkpoint="best")
    found = studies_of(Subject(is_averaged=True, game="pong", agent="dqn", protocol=best), 50_000_000)
    assert found["mnih2015"] == ("after 200,000,000 frames",)


def test_unpublished_game_has_no_reference():
    assert published("catch", 1_000_000, TRACK_A) is None


def test_training_returns_are_never_of_an_evaluation_s_protocol():
    subject = Subject(is_averaged=True, game="pong", agent="dqn", protocol=STICKY)
    found = studies_of(subject, 1_000_000)
    assert found["dopamine_jax"] == ("returns of training games",)
    assert found["nnabla_dqn"][0] == "sticky 0"


def test_training_returns_are_compared_with_training_returns():
    subject = Subject(is_averaged=True, game="pong", agent="dqn", protocol=STICKY, measure="training")
    assert studies_of(subject, 1_000_000)["dopamine_tf"] == ()


def test_best_weights_of_a_run_are_compared_with_best_weights_only():
    best = dataclasses.replace(TRACK_A, checkpoint="best")
    found = studies_of(Subject(is_averaged=True, game="pong", agent="dqn", protocol=best), 200_000_000)
    assert found["mnih2015"] == ()
    assert found["nnabla_dqn"][0] == "current weights"


def test_agent_without_figures_is_compared_with_plain_dqn_and_says_so():
    found = published("pong", 1_000_000, TRACK_A, agent="prioritized_ddqn, 3-step", cap_reached=False)
    assert (found.agent, found.differences) == ("dqn", ("agent dqn",))


@pytest.mark.parametrize(
    ("score", "verdict"), [(0.11, "below"), (0.12, "on track"), (11.83, "on track"), (11.84, "above")]
)
def test_verdict_is_by_the_spread_of_the_seeds(score: float, verdict: str):
    assert published("pong", 10_000_000, TRACK_A, cap_reached=False).verdict(score) == verdict


@pytest.mark.parametrize(
    ("study", "env_frames", "window"),
    [
        ("nnabla_dqn", 5_000_000, None),
        ("nnabla_dqn", 10_000_000, (8_000_000, 12_000_000)),
        ("nnabla_dqn", 200_000_000, (198_000_000, 200_000_000)),
        ("dopamine_jax", 5_000_000, (4_000_000, 5_000_000)),
        ("dopamine_jax", 10_000_000, (7_000_000, 12_000_000)),
        ("mnih2015", 50_000_000, None),
    ],
)
def test_figure_is_averaged_over_the_frames_that_its_source_states(
    study: str, env_frames: int, window: tuple[int, int] | None
):
    averaging = studies()[study].averaging
    assert (averaging and averaging.window(env_frames)) == window


def test_single_evaluation_differs_from_the_mean_of_several():
    subject = Subject(game="pong", agent="dqn", protocol=TRACK_A, cap_reached=False)
    assert studies_of(subject, 5_000_000)["nnabla_dqn"] == ()
    assert studies_of(subject, 10_000_000)["nnabla_dqn"] == ("mean over 8M to 12M frames",)


def test_no_verdict_on_another_protocol():
    assert published("pong", 10_000_000, TRACK_A, cap_reached=True).verdict(-21.0) == ""


@pytest.mark.parametrize(
    ("field", "value", "difference"),
    [("full_action_set", True, "all 18 actions no"), ("flicker_probability", 0.5, "flicker 0")],
)
def test_field_that_studies_do_not_state_is_as_in_all_of_them(field: str, value: object, difference: str):
    protocol = dataclasses.replace(TRACK_A, **{field: value})
    found = published("pong", 5_000_000, protocol, cap_reached=False)
    assert (found.differences, found.verdict(-21.0)) == ((difference,), "")


def test_no_verdict_by_a_single_printed_number():
    best = Subject(
        is_averaged=True, game="pong", agent="dqn", protocol=dataclasses.replace(TRACK_A, checkpoint="best")
    )
    (paper,) = [found for found in references(best, 200_000_000) if found.study.name == "mnih2015"]
    assert paper.verdict(-21.0) == ""


def test_no_verdict_by_the_figure_of_a_single_seed():
    best = dataclasses.replace(TRACK_A, max_episode_frames=108_000, epsilon=0.0, checkpoint="best")
    subject = Subject(is_averaged=True, game="pong", agent="rainbow_ablation_full", protocol=best)
    found = {each.study.name: each for each in references(subject, 200_000_000)}["nnabla_best_rainbow"]
    assert (found.n, found.lowest, found.highest, found.differences) == (1, 21.0, 21.0, ())
    assert found.verdict(20.9) == ""


def training_differences(agent: str) -> dict[str, tuple[str, ...]]:
    """Return the differences of each study of Dopamine, after a million frames of its protocol."""
    subject = Subject(is_averaged=True, game="pong", agent=agent, protocol=STICKY, measure="training")
    return {name: found for name, found in studies_of(subject, 1_000_000).items() if "dopamine" in name}


@pytest.mark.parametrize(("agent", "theirs"), [("iqn", "iqn, 3-step"), ("rainbow", RAINBOW_OF_DOPAMINE)])
def test_agent_of_dopamine_that_is_more_or_less_than_its_name_is_another_agent(agent: str, theirs: str):
    assert training_differences(agent)["dopamine_jax"] == (f"agent {theirs}",)


def test_rainbow_of_dopamine_is_found_by_its_parts():
    assert training_differences(RAINBOW_OF_DOPAMINE)["dopamine_jax"] == ()


def test_agent_with_the_impala_network_is_compared_with_the_same_agent_and_network():
    found = training_differences("dqn, impala")
    assert (found["dopamine_jax_impala"], found["dopamine_jax"]) == ((), ("agent dqn",))


def test_figure_of_another_network_says_so():
    assert training_differences("dqn")["dopamine_jax_impala"] == ("agent dqn, impala",)


def test_agent_with_more_than_its_name_says_is_shown_next_to_that_of_the_name():
    (found,) = [
        each
        for each in references(
            Subject(is_averaged=True, game="pong", agent="rainbow, 20-step", protocol=TRACK_A), 10_000_000
        )
        if each.study.name == "nnabla_rainbow"
    ]
    assert found.agent == "rainbow"
