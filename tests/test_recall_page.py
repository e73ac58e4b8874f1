"""The page of the scores on Recall: made from its table, and it says what the table has."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from memory_pages import RESULTS, final_scores
from recall import BEST, METHODS, page, table_row

ROWS = pl.DataFrame(
    {
        "method": ["drqn", "drqn", "drqn"],
        "seed": [1, 1, 2],
        "env_frames": [10, 20, 20],
        "eval_type": ["light", "final", "final"],
        "mean_return": [1.0, 4.5, -0.25],
    }
)


@pytest.fixture(scope="module")
def kept() -> pl.DataFrame:
    return pl.read_csv(RESULTS / "recall/evaluations.csv")


def test_score_is_that_of_the_final_evaluation() -> None:
    assert final_scores(ROWS, "drqn") == {1: 4.5, 2: -0.25}


def test_row_has_every_seed_their_mean_and_the_share_of_the_best_score() -> None:
    assert table_row(ROWS, "drqn", [1, 2, 3]) == "| DRQN | 4.50 | −0.25 | – | 2.12 | 42% |"


def test_page_is_what_the_table_makes(kept: pl.DataFrame) -> None:
    assert (RESULTS / "recall.md").read_text(encoding="utf-8") == page(kept)


@pytest.mark.parametrize("method", METHODS)
def test_each_agent_has_three_seeds(kept: pl.DataFrame, method: str) -> None:
    assert sorted(final_scores(kept, method)) == [1, 2, 3]


@pytest.mark.parametrize("method", ["r2d2", "drqn"])
def test_agents_with_memory_have_95_percent_of_the_best_score(kept: pl.DataFrame, method: str) -> None:
    assert min(final_scores(kept, method).values()) >= 0.95 * BEST


@pytest.mark.parametrize("method", ["dqn_4_frames", "dqn_1_frame"])
def test_agents_without_memory_are_at_chance(kept: pl.DataFrame, method: str) -> None:
    assert max(final_scores(kept, method).values()) <= 0.75  # three standard errors of 100 games above 0
