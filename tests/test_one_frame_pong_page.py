"""The page on Pong seen one frame at a time: made from its table, and it says what the table has."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from memory_pages import RESULTS, final_scores
from one_frame_pong import WORST, more_with_memory, page


@pytest.fixture(scope="module")
def kept() -> pl.DataFrame:
    return pl.read_csv(RESULTS / "one_frame_pong/evaluations.csv")


def norms(rows: pl.DataFrame, seed: int) -> list[float]:
    return rows.filter((pl.col("method") == "lstm") & (pl.col("seed") == seed))["state_norm"].to_list()


def test_page_is_what_the_table_makes(kept: pl.DataFrame) -> None:
    assert (RESULTS / "one_frame_pong.md").read_text(encoding="utf-8") == page(kept)


def test_difference_with_memory_is_that_of_the_means_of_final_scores() -> None:
    rows = pl.DataFrame(
        {
            "method": ["lstm", "lstm", "dqn_1_frame", "dqn_1_frame"],
            "seed": [1, 2, 1, 2],
            "eval_type": ["final"] * 4,
            "mean_return": [1.0, 3.0, -1.0, 1.0],
        }
    )
    # 2 ± 4.303 · √2 with two degrees of freedom
    assert more_with_memory(rows) == "2.0 higher [−4, 8]"


def test_without_memory_almost_every_point_is_lost(kept: pl.DataFrame) -> None:
    assert max(final_scores(kept, "dqn_1_frame").values()) < WORST + 4


def test_one_seed_wins_with_memory_and_one_has_the_worst_score(kept: pl.DataFrame) -> None:
    scores = final_scores(kept, "lstm")
    assert scores[2] > 0
    assert scores[1] < WORST + 1


def test_the_state_of_the_seed_that_does_not_learn_grows(kept: pl.DataFrame) -> None:
    grown, steady = norms(kept, 1), norms(kept, 2)
    assert grown[-1] > 10 * grown[1]
    assert max(steady[1:]) < 3 * min(steady[1:])
