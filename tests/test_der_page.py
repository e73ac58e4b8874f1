"""The page of data-efficient Rainbow: scores of games, means over games, and what its tables make."""

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from keep_der import KEPT, PAGE, RESULTS, bounds, check_form, difference, game_scores, more_seeds, page, table

RUNS = pl.DataFrame(
    {
        "run": ["a", "b", "c"],
        "game": ["pong", "pong", "alien"],
        "seed": [1, 2, 1],
        "minutes": [10.0, 20.0, 30.0],
    }
)
EVALUATIONS = pl.DataFrame(
    {
        "run": ["a", "a", "b", "c"],
        "eval_type": ["light", "final", "final", "final"],
        "mean_return": [1.0, -20.0, -18.0, 750.0],
        "std_return": [0.0, 1.0, 2.0, 100.5],
        "frame_caps": [0, 3, 0, 0],
    }
)


def test_score_of_a_game_is_the_final_one_of_its_first_seed():
    (alien, pong) = game_scores(RUNS, EVALUATIONS)
    assert (alien.game, alien.mean, alien.later_means, alien.published) == ("alien", 750.0, (), 739.9)
    assert (pong.mean, pong.later_means, pong.minutes) == (-20.0, (-18.0,), 10.0)


def test_row_has_the_first_seed_and_marks_games_that_were_cut():
    row = table(game_scores(RUNS, EVALUATIONS)).splitlines()[3]
    assert row.startswith("| pong | −20.0 ± 1.0 † | −19.3 |")


def test_games_with_several_seeds_have_a_table_of_their_own():
    found = more_seeds(game_scores(RUNS, EVALUATIONS))
    assert found.splitlines()[-2] == "| pong | −20.0 | −18.0 | −18.0 | −19.3 |"
    assert more_seeds(game_scores(RUNS.filter(pl.col("seed") == 1), EVALUATIONS)) == ""


def test_interval_of_equal_scores_is_their_value():
    assert bounds(np.array([0.25, 0.25, 0.25])) == "0.250 [0.250, 0.250]"


def test_games_are_drawn_for_both_sides_alike():
    ours = np.array([0.1, 0.9, 0.4, 0.2, 3.0])
    assert difference(ours + 0.5, ours) == "0.500 [0.500, 0.500]"


def test_run_with_other_importance_weights_is_refused(tmp_path: Path):
    (tmp_path / "spec.toml").write_text(
        '[replay]\nweight_maximum = "minibatch"\npriority_offset = 1e-10\n', encoding="utf-8"
    )
    with pytest.raises(SystemExit, match=r"expected \('replay', 0\.01\)"):
        check_form(tmp_path)


def test_run_from_before_the_key_has_the_weights_of_the_page(tmp_path: Path):
    (tmp_path / "spec.toml").write_text("[replay]\npriority_offset = 0.01\n", encoding="utf-8")
    check_form(tmp_path)


@pytest.mark.skipif(not (RESULTS / KEPT / "runs.csv").exists(), reason="no run of DER is kept yet")
def test_page_of_der_is_what_the_tables_make():
    runs, evaluations = (pl.read_csv(RESULTS / KEPT / f"{name}.csv") for name in ("runs", "evaluations"))
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(game_scores(runs, evaluations), runs)
