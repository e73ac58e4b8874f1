"""The comparison of two groups: identical, or the difference of their means, shown or not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from atari_dqn.compare.comparison import Comparison, compare
from runs import make_run


def compared(root: Path, plain: Sequence[float], double: Sequence[float]) -> Comparison:
    """Compare two groups by the final scores of their seeds, all evaluated once before at −20."""
    paths = [
        make_run(root / f"{name}{seed}", [-20.0, final], overrides=[f"seed={seed}", *toggles])
        for name, finals, toggles in (("plain", plain, []), ("double", double, ["toggles.double=true"]))
        for seed, final in enumerate(finals, start=1)
    ]
    return compare(paths, human_table="atari57")


def findings(comparison: Comparison) -> list[str | None]:
    return [each.contrast and each.contrast.finding for each in comparison.results]


@pytest.mark.parametrize(
    ("plain", "double", "finding"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "identical in every evaluation"),
        ([1.0], [1.0], "identical in every evaluation"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], "no difference is shown"),
        ([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], "no difference is shown"),
        ([1.0, 1.0], [1.0, 1.0, 1.0], "no difference is shown"),
        ([1.0, 2.0, 3.0], [11.0, 12.0, 13.0], "a difference is shown"),
        ([1.0, 1.0], [2.0, 2.0], "no interval: within each group all seeds have the same score"),
        ([1.0], [2.0], None),
    ],
    ids=[
        "same",
        "same, one seed",
        "overlapping",
        "seeds swapped",
        "touching",
        "apart",
        "no spread",
        "one seed",
    ],
)
def test_a_group_is_contrasted_with_the_first(
    tmp_path: Path, plain: list[float], double: list[float], finding: str | None
):
    assert findings(compared(tmp_path, plain, double)) == [None, finding]


def test_a_group_that_is_identical_to_another_than_the_first_says_to_which(tmp_path: Path):
    first = make_run(tmp_path / "1", [5.0])
    second = make_run(tmp_path / "2", [6.0], overrides=["learner.loss=mse"])
    third = make_run(tmp_path / "3", [6.0], overrides=["learner.loss=mse", "toggles.double=true"])
    contrast = compare([first, second, third], human_table="atari57").results[2].contrast
    assert contrast is not None
    assert (contrast.to.label, contrast.finding) == (
        "pong_trackA double=false, loss=mse", "identical in every evaluation",
    )  # fmt: skip


def test_equal_scores_at_other_frames_are_not_identical(tmp_path: Path):
    first = make_run(tmp_path / "1", [5.0])
    second = make_run(tmp_path / "2", [5.0], overrides=["toggles.double=true"], late_frames=4)
    assert findings(compare([first, second], human_table="atari57")) == [None, "not compared"]


def test_a_finding_is_said_in_a_sentence(tmp_path: Path):
    found = compared(tmp_path, [1.0, 2.0, 3.0], [11.0, 12.0, 14.0]).results[1].contrast
    # 10.33 ± 3.08 · √(1/3 + 7/9), with 3.4 degrees of freedom
    assert str(found) == "mean minus that of the first group: 10.3 [7.2, 13.5]: a difference is shown"


def test_a_difference_of_seeds_without_spread_has_no_interval(tmp_path: Path):
    found = compared(tmp_path, [1.0, 1.0], [2.0, 2.0]).results[1].contrast
    assert str(found) == (
        "mean minus that of the first group: 1.0: "
        "no interval: within each group all seeds have the same score"
    )


@pytest.mark.parametrize("cut", [0, 1], ids=["the first", "the other"])
def test_group_with_cut_games_is_not_set_against_one_of_its_protocol_with_whole_games(
    tmp_path: Path, cut: int
):
    cap = "evaluation.max_episode_frames=1_000"
    runs = [
        make_run(
            tmp_path / f"{place}_{seed}",
            [float(10 * place + seed)],
            overrides=[f"seed={seed}", cap, *toggles],
            frame_caps=9 if place == cut else 0,
        )
        for place, toggles in enumerate([[], ["toggles.double=true"]])
        for seed in (1, 2)
    ]
    assert findings(compare(runs, human_table="atari57")) == [None, None]


@pytest.mark.fault("H07")
def test_a_score_of_cut_games_is_not_set_against_whole_games(tmp_path: Path):
    cap = "evaluation.max_episode_frames=1_000"
    runs = [make_run(tmp_path / f"whole{seed}", [20.0], overrides=[f"seed={seed}"]) for seed in (1, 2)]
    runs += [
        make_run(tmp_path / f"cut{seed}", [-1.0], overrides=[f"seed={seed}", cap], frame_caps=9)
        for seed in (1, 2)
    ]
    assert findings(compare(runs, human_table="atari57")) == [None, None]


def test_groups_of_other_games_are_not_contrasted(tmp_path: Path):
    pong = make_run(tmp_path / "pong", [5.0])
    breakout = make_run(tmp_path / "breakout", [5.0], spec="breakout_trackA.toml")
    assert findings(compare([pong, breakout], human_table="atari57")) == [None, None]


def test_seeds_that_are_identical_are_named(tmp_path: Path):
    finals = {1: 5.0, 2: 6.0, 3: 5.0}
    runs = [
        make_run(tmp_path / str(seed), [-20.0, final], overrides=[f"seed={seed}"])
        for seed, final in finals.items()
    ]
    warnings = compare(runs, human_table="atari57").warnings
    assert "pong pong_trackA: seeds 1, 3 are identical in every evaluation" in warnings


def test_runs_that_were_not_evaluated_yet_are_identical_to_none(tmp_path: Path):
    runs = [
        make_run(tmp_path / f"{double}{seed}", [], overrides=[f"seed={seed}", double], finished=False)
        for double in ("toggles.double=false", "toggles.double=true")
        for seed in (1, 2)
    ]
    comparison = compare(runs, human_table="atari57")
    assert findings(comparison) == [None, None]
    assert not any("identical" in each for each in comparison.warnings)
