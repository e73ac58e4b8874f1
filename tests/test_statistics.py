import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atari_dqn.compare import statistics
from atari_dqn.compare.statistics import (
    column,
    difference,
    estimates,
    improvement,
    iqm,
    mean,
    median,
    median_run,
    optimality_gap,
)

RLIABLE = json.loads(Path(__file__).with_name("rliable.json").read_text())
"""What rliable itself made of these scores: scripts/rliable_results.py."""
ONE_GAME = np.array([[1.0], [2.0], [3.0], [4.0], [100.0]])
STATISTICS = {"mean": mean, "median": median, "iqm": iqm, "optimality_gap": optimality_gap}


def close(estimate: statistics.Estimate, expected: list[float]) -> bool:
    found = [estimate.value, estimate.interval.low, estimate.interval.high]
    return bool(np.abs(np.subtract(found, expected)).max() < 1e-9)


@pytest.mark.parametrize("case", RLIABLE["cases"], ids=range(len(RLIABLE["cases"])))
def test_values_and_intervals_are_rliable_s(case: dict[str, Any]):
    left, right = np.array(case["left"]), np.array(case["right"])
    settings = {"resamples": RLIABLE["resamples"], "seed": RLIABLE["seed"]}
    found = estimates(left, STATISTICS, **settings)
    found["improvement"] = improvement(left, right, **settings)
    assert {name for name, estimate in found.items() if not close(estimate, case["results"][name])} == set()


def test_rliable_s_own_examples_have_their_published_values():
    left, right = (np.array(RLIABLE["cases"][0][side]) for side in ("left", "right"))
    assert [f(left) for f in (mean, median, iqm)] == [1.5, 1.5, 1.5]
    assert [f(right) for f in (mean, median, iqm)] == [2.0, 2.0, 2.0]
    assert improvement(left, right).value == pytest.approx(1 / 3)


def test_of_one_game_the_median_of_runs_is_not_the_mean():
    assert (median_run(ONE_GAME), median(ONE_GAME), mean(ONE_GAME)) == (3.0, 22.0, 22.0)


def test_iqm_cuts_a_quarter_rounded_down_off_each_end():
    assert iqm(ONE_GAME) == 3.0


def test_one_run_has_no_interval():
    assert estimates(np.array([[7.0]]), {"mean": mean})["mean"] == statistics.Estimate(7.0, None)


def test_intervals_repeat():
    first, second = (estimates(ONE_GAME, {"iqm": iqm})["iqm"] for _ in range(2))
    assert first == second


def test_intervals_do_not_depend_on_how_many_resamples_are_held_at_once(monkeypatch: pytest.MonkeyPatch):
    whole = estimates(ONE_GAME, {"iqm": iqm})["iqm"], improvement(ONE_GAME, ONE_GAME + 1)
    monkeypatch.setattr(statistics, "_CHUNK_SCORES", 35)
    assert whole == (estimates(ONE_GAME, {"iqm": iqm})["iqm"], improvement(ONE_GAME, ONE_GAME + 1))


def test_ties_are_half_an_improvement():
    assert improvement(np.array([[1.0], [2.0]]), np.array([[1.0]])).value == 0.75


def test_human_play_leaves_no_gap_and_random_play_all_of_it():
    assert optimality_gap(np.array([[1.5, 1.0]])) == 0.0
    assert optimality_gap(np.array([[0.0, 0.0]])) == 1.0


def test_difference_is_that_of_the_means_with_welch_s_interval():
    found = difference(column([10.0, 12.0, 17.0]), column([-5.0, -3.0]))
    assert found.value == 17.0
    assert found.interval is not None
    # scipy 1.14: ttest_ind(…, equal_var=False).confidence_interval()
    assert (found.interval.low, found.interval.high) == pytest.approx((9.236065145, 24.763934855), rel=1e-5)


def test_difference_over_games_is_that_of_the_means_over_games():
    left, right = np.array([[1.0, 10.0], [3.0, 10.0]]), np.array([[0.0, 4.0], [0.0, 4.0]])
    found = difference(left, right)
    assert found.value == (2.0 + 6.0) / 2
    assert found.interval is not None
    # only one mean of two runs varies: by 1, halved over two games, with one degree of freedom
    assert found.interval.high - found.value == pytest.approx(12.7062 * 0.5, rel=1e-5)


def test_difference_of_runs_without_spread_has_no_interval():
    found = difference(column([2.0, 2.0]), column([1.0, 1.0]))
    assert found == statistics.Estimate(1.0, None)


def test_equal_scores_differ_by_nothing_whatever_the_numbers_of_runs():
    # the mean of 12 times −20.7 is rounded to another number than that of 6 times
    found = difference(column([-20.7] * 12), column([-20.7] * 6))
    assert found == statistics.Estimate(0.0, statistics.Interval(0.0, 0.0))


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "share"), [(2, 0.16), (10, 0.28)])
def test_one_of_ten_comparisons_with_the_first_group_is_false_as_often_as_the_page_says(
    seeds: int, share: float
):
    draws = np.random.default_rng(0).normal(size=(300, 11, seeds))
    found = [[difference(column(each), column(first)).interval for each in rest] for first, *rest in draws]
    is_false = [any(each is not None and not each.low <= 0 <= each.high for each in row) for row in found]
    assert np.mean(is_false) == pytest.approx(share, abs=0.05)
    page = Path(__file__).parents[1] / "docs/comparing.md"
    assert f"in {share:.0%}".replace("%", " %") in page.read_text(encoding="utf-8")


def test_difference_from_a_single_run_has_no_interval():
    assert difference(np.array([[1.0]]), np.array([[0.0], [2.0]])).interval is None
