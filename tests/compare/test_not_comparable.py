"""What is never compared: returns of a mix of ε with published ones, scores with flicker with others."""

from pathlib import Path

import pytest

from atari_dqn.compare.comparison import Comparison, compare
from atari_dqn.compare.reference.studies import DEFAULT_HUMAN_TABLE
from runs import make_run

FLICKER = ["env.flicker_probability=0.5"]
SPECTRUM = ["exploration.kind=spectrum", "env.num_envs=8"]


DOPAMINE = [
    "env.sticky_probability=0.25", "env.noop_max_frames=0", "env.max_episode_frames=108_000",
    "env.terminal_on_life_loss=false", "evaluation.max_episode_frames=108_000",
]  # fmt: skip
"""The protocol of published returns of training games."""


def compared(folder: Path, *variants: list[str], seeds: int = 3) -> Comparison:
    """Compare runs of one million frames; variants differ in these keys."""
    paths = [
        make_run(folder / f"{place}_{seed}", [-20.0, 5.0 + seed], overrides=[*overrides, f"seed={seed}"])
        for place, overrides in enumerate(variants)
        for seed in range(1, seeds + 1)
    ]
    return compare(paths, human_table=DEFAULT_HUMAN_TABLE)


def measures(comparison: Comparison) -> set[str]:
    return {each.measure for result in comparison.results for each in result.references}


def test_training_returns_of_one_epsilon_are_shown_next_to_published_ones(tmp_path: Path):
    assert "training" in measures(compared(tmp_path, [*DOPAMINE, "exploration.epsilon_end=0.01"]))


def test_training_returns_of_a_mix_of_epsilon_are_not_compared_with_published_ones(tmp_path: Path):
    assert measures(compared(tmp_path, [*DOPAMINE, *SPECTRUM])) == {"evaluation"}


@pytest.fixture
def both(tmp_path: Path) -> Comparison:
    """The same method with and without flicker."""
    return compared(tmp_path, [], FLICKER)


def test_game_that_flickers_is_another_game(both: Comparison):
    assert both.games == ["pong", "pong, flicker 0.5"]


def test_scores_with_flicker_are_compared_with_none_without(both: Comparison):
    assert [result.contrast for result in both.results] == [None, None]
    assert both.improvements == ()


def test_scores_with_flicker_are_neither_normalised_nor_next_to_published_ones(both: Comparison):
    flickering = both.of_game("pong, flicker 0.5")[0]
    assert flickering.references == ()
    assert flickering.group.method not in {each.method for each in both.aggregates}


def test_scores_with_the_same_flicker_are_compared(tmp_path: Path):
    comparison = compared(tmp_path, FLICKER, [*FLICKER, "toggles.double=true"])
    assert comparison.results[1].contrast is not None


def test_run_whose_rewards_are_not_clipped_is_compared(tmp_path: Path):
    comparison = compared(tmp_path, ["learner.max_abs_reward=inf"])
    assert {each.training_max_abs_reward for each in comparison.protocols.values()} == {float("inf")}
