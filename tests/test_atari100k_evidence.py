"""The script that keeps Track C's evidence: its intervals, and what its plot says."""

import math
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from keep_atari100k import COLUMNS, INTERVAL_LABEL, STUDENT_T, inside, legend_entries, panel, student


def test_students_interval_is_the_mean_and_t_standard_errors_to_each_side():
    # mean 4, variance 4 (n − 1), standard error 2 / √3, t 4.303 with two degrees of freedom
    assert student([2.0, 4.0, 6.0]) == pytest.approx((-0.96868, 8.96868), abs=1e-5)


def test_two_seeds_have_the_interval_of_one_degree_of_freedom():
    # standard error 1
    assert student([1.0, 3.0]) == pytest.approx((2 - 12.706, 2 + 12.706))


@pytest.mark.parametrize("seeds", [1, max(STUDENT_T) + 1])
def test_there_is_no_interval_for_one_seed_or_more_than_the_table_has(seeds: int):
    assert all(math.isnan(bound) for bound in student([1.0] * seeds))


@pytest.mark.parametrize(
    ("figure", "said"),
    [(0.9, "outside"), (1.0, "inside"), (1.5, "inside"), (2.0, "inside"), (2.1, "outside")],
)
def test_a_bound_belongs_to_its_interval(figure: float, said: str):
    assert inside(figure, 1.0, 2.0) == said


@pytest.mark.parametrize("unknown", [(math.nan, 1.0, 2.0), (1.5, math.nan, math.nan)])
def test_nothing_is_said_of_an_unknown_figure_or_interval(unknown: tuple[float, float, float]):
    assert inside(*unknown) == ""


def row(*scores: float) -> dict[str, object]:
    low, high = student(list(scores))
    return {
        "agent": "der",
        "mean": sum(scores) / len(scores),
        "student_low": low,
        "student_high": high,
        "scores": " ".join(f"{seed}:{score}" for seed, score in enumerate(scores)),
        **{column.agent: 5.0 for column in COLUMNS},
    }


@pytest.mark.parametrize(
    "rows_of_panels",
    [[[row(1.0), row(1.0, 2.0)]], [[row(1.0)], [row(1.0, 2.0)]]],
    ids=["first agent", "first game"],
)
def test_legend_has_the_interval_where_the_first_has_a_single_seed(rows_of_panels):
    panels = Figure().subplots(1, len(rows_of_panels), squeeze=False)[0]
    for axes, rows in zip(panels, rows_of_panels, strict=True):
        panel(axes, "pong", rows)
    ours = [label for label in legend_entries(panels) if label.startswith("ours")]
    assert sorted(ours) == [INTERVAL_LABEL, "ours: a seed", "ours: mean"]


def test_a_wide_interval_does_not_squeeze_seeds_and_published_scores():
    axes = Figure().subplots()
    panel(axes, "pong", [row(1.0, 11.0)])  # 6 ± 63.5; published: 5
    assert axes.get_ylim() == pytest.approx((0.0, 12.0))
