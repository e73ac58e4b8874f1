"""The best evaluation of a seed is one of those up to the frame at which the runs are compared."""

from pathlib import Path

import pytest

from atari_dqn.compare.comparison import Comparison, compare
from runs import make_run

EIGHT = "env.num_envs=8"


def compared(paths: list[Path], at_frames: int | None = None) -> Comparison:
    return compare(paths, at_frames=at_frames, human_table="atari57")


@pytest.fixture
def of_two_lengths(tmp_path: Path) -> list[Path]:
    """Two finished seeds of one and of one and a half million frames, the longer one best at its end."""
    return [
        make_run(tmp_path / "1", [5.0, 1.0], overrides=["seed=1"]),
        make_run(tmp_path / "2", [-20.0, 2.0, 19.0], overrides=["seed=2"]),
    ]


@pytest.fixture
def late(tmp_path: Path) -> list[Path]:
    """Three seeds of eight environments, whose evaluations come up to 28 frames late; an iteration has 32."""
    late_frames = {1: 12, 2: 0, 3: 28}
    return [
        make_run(tmp_path / str(seed), [-20.0, seed], overrides=[f"seed={seed}", EIGHT], late_frames=frames)
        for seed, frames in late_frames.items()
    ]


def test_best_of_a_longer_run_is_not_after_the_end_of_the_shortest(of_two_lengths: list[Path]):
    assert compared(of_two_lengths).results[0].best.values == [5.0, 2.0]


def test_best_at_the_end_has_the_evaluations_of_several_environments_that_come_a_few_frames_later(
    late: list[Path],
):
    assert compared(late).results[0].best.values == [1.0, 2.0, 3.0]


def test_best_at_a_frame_has_the_evaluation_due_there_though_it_came_a_few_frames_later(late: list[Path]):
    assert compared(late, at_frames=500_000).results[0].best.values == [-20.0, -20.0, -20.0]


def test_best_at_a_frame_has_no_evaluation_a_whole_iteration_later(tmp_path: Path):
    run = make_run(tmp_path / "run", [-20.0, 4.0], overrides=[EIGHT], late_frames=32)
    assert compared([run], at_frames=500_000).results[0].best.n == 0


def test_runs_of_unequal_length_are_not_said_to_be_compared_at_the_shortest_if_a_frame_is_given(
    of_two_lengths: list[Path],
):
    warnings = compared(of_two_lengths, at_frames=1_000_000).warnings
    assert not any("of unequal length" in each for each in warnings)


@pytest.mark.parametrize(("late_frames", "is_warned"), [(28, False), (32, True)])
def test_lengths_are_unequal_if_they_differ_by_a_whole_iteration(
    tmp_path: Path, late_frames: int, is_warned: bool
):
    runs = [
        make_run(tmp_path / str(seed), [1.0, 2.0], overrides=[f"seed={seed}", EIGHT], late_frames=late)
        for seed, late in ((1, 0), (2, late_frames))
    ]
    assert any("of unequal length" in each for each in compared(runs).warnings) is is_warned


def test_light_evaluation_is_no_best_score(tmp_path: Path):
    run = make_run(tmp_path / "run", [99.0, 1.0])
    table = run / "eval_log.csv"
    table.write_text(table.read_text().replace(",full,", ",light,"))
    assert compared([run]).results[0].best.values == [1.0]


def test_groups_with_other_numbers_of_evaluations_have_a_caveat(tmp_path: Path):
    often = make_run(tmp_path / "often", [1.0, 2.0], overrides=["evaluation.full_period_frames=500_000"])
    rare = make_run(
        tmp_path / "rare", [1.0], overrides=["evaluation.full_period_frames=1_000_000", "toggles.double=true"]
    )
    warnings = compare([often, rare], human_table="atari57").warnings
    assert (
        "pong: groups differ in evaluation.full_period_frames: the best score and the time to a score favour "
        "the group with more evaluations, or with fewer games in each"
    ) in warnings
    assert not any("groups differ" in each for each in compare([often], human_table="atari57").warnings)
