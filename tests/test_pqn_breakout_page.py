"""The page of PQN on Breakout: the evaluation of a column, published figures, and what its tables make."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from equal_frames import bracketed, evaluations_at
from keep_pqn import RESULTS, Run, runs_of
from keep_pqn_breakout import KEPT, PAGE, DQNRun, dqn_runs, page, table

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


@pytest.mark.parametrize(("millions", "scores"), [(1, [3.25]), (2, [])])
def test_evaluation_of_a_column_is_one_near_its_frames(millions: int, scores: list[float]) -> None:
    assert evaluations_at(EVALUATIONS, millions)["mean_return"].to_list() == scores


def test_evaluations_at_ten_million_frames_are_those_within_two_million() -> None:
    frames = [7_000_000, 8_000_000, 9_000_000, 10_000_500]
    evaluations = pl.DataFrame({"env_frames": frames, "mean_return": [1.0, 2.0, 3.0, 4.0]})
    assert evaluations_at(evaluations, 10)["mean_return"].to_list() == [2.0, 3.0, 4.0]


def test_row_of_a_run_has_dashes_where_it_did_not_come_and_marks_games_that_were_cut() -> None:
    rows = table([RUN]).splitlines()
    assert rows[2] == "| PQN, seed 2, training games | 5.5 | 10.5 | – | – |"
    assert rows[3] == "| PQN, seed 2, evaluations | 3.2 † | – | – | – |"


def test_rows_of_dqn_are_those_of_its_seed() -> None:
    run = DQNRun(made={"seed": 3}, games=GAMES, evaluations=EVALUATIONS)
    assert table([run]).splitlines()[2] == "| DQN, Track A\\*, seed 3, training games | 5.5 | 10.5 | – | – |"


def test_published_figure_has_its_seeds_in_brackets() -> None:
    figure = Figure(
        study="a", agent="dqn", game="breakout", env_frames=1, mean=-1.25, lowest=-2.0, highest=0.5, n=3
    )
    assert bracketed(figure) == "−1.2 [−2.0, 0.5]"
    assert bracketed(None) == "–"


@pytest.mark.skipif(not (RESULTS / KEPT / "games.csv").exists(), reason="no run on Breakout is kept yet")
def test_page_is_what_the_tables_make() -> None:
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(
        list(runs_of(RESULTS / KEPT)), dqn_runs(RESULTS)
    )
