"""The page of PQN on Breakout: the evaluation of a column, published figures, and what its tables make."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from keep_pqn import RESULTS, Run, runs_of
from keep_pqn_breakout import KEPT, PAGE, bracketed, evaluation_at, page, table

from atari_dqn.compare.reference.studies import Figure

GAMES = pl.DataFrame(
    {
        "env_frames": [100_000 * game for game in range(1, 31)],
        "minutes": [0.5 * game for game in range(1, 31)],
        "episode_return": [float(game) for game in range(1, 31)],
    }
)
EVALUATIONS = pl.DataFrame(
    {"env_frames": [1_000_500, 2_200_000], "mean_return": [3.25, 8.0], "frame_caps": [1, 0]}
)
RUN = Run(
    made={"run": "pqn_seed2", "command": "train pqn --set seed=2"}, games=GAMES, evaluations=EVALUATIONS
)


@pytest.mark.parametrize(("frames", "score"), [(1e6, 3.25), (2e6, None), (2.2e6, 8.0)])
def test_evaluation_of_a_column_is_one_near_its_frames(frames: float, score: float | None) -> None:
    found = evaluation_at(RUN, frames)
    assert (found and found["mean_return"]) == score


def test_row_of_a_run_has_dashes_where_it_did_not_come_and_marks_games_that_were_cut() -> None:
    rows = table([RUN]).splitlines()
    assert rows[2] == "| PQN, seed 2, training games | 5.5 | 10.5 | – | – |"
    assert rows[3] == "| PQN, seed 2, evaluations | 3.2 † | – | – | – |"


def test_published_figure_has_its_seeds_in_brackets() -> None:
    figure = Figure(
        study="a", agent="dqn", game="breakout", env_frames=1, mean=-1.25, lowest=-2.0, highest=0.5, n=3
    )
    assert bracketed(figure) == "−1.2 [−2.0, 0.5]"
    assert bracketed(None) == "–"


@pytest.mark.skipif(not (RESULTS / KEPT / "games.csv").exists(), reason="no run on Breakout is kept yet")
def test_page_is_what_the_tables_make() -> None:
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(list(runs_of(RESULTS / KEPT)))
