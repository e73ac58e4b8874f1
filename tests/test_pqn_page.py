"""The page of PQN and DQN on Pong: scores of the games that had ended, and what its tables make."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from keep import minutes_of
from keep_pqn import (
    KEPT,
    PAGE,
    RESULTS,
    Run,
    description,
    kept_runs,
    minutes_table,
    page,
    score_at,
    spec_and_seed,
    table,
    timed_runs,
)

GAMES = pl.DataFrame(
    {
        "env_frames": [100_000 * game for game in range(1, 31)],
        "minutes": [0.5 * game for game in range(1, 31)],
        "episode_return": [float(game) for game in range(1, 31)],
    }
)
EVALUATIONS = pl.DataFrame({"mean_return": [-20.5], "std_return": [0.5], "episodes": [10]})
MADE = {
    "run": "pqn_seed2", "command": "train pqn --set seed=2", "started": "2026-11-26T06:00",
    "commit": "7f56d55", "cpu_model": "EPYC", "cpu_flags": "avx avx2", "torch_threads": 2,
    "torch": "2.13.0", "resumes": 1,
    "busy_notices": 0,
}  # fmt: skip
RUN = Run(made=MADE, games=GAMES, evaluations=EVALUATIONS)
is_kept = pytest.mark.skipif(not (RESULTS / KEPT / "games.csv").exists(), reason="no run of PQN is kept yet")


def test_score_is_the_mean_of_the_last_20_games_that_had_ended() -> None:
    assert score_at(GAMES, "env_frames", 2_550_000) == sum(range(6, 26)) / 20
    assert score_at(GAMES, "minutes", 12.7) == sum(range(6, 26)) / 20


@pytest.mark.parametrize(("clock", "end"), [("env_frames", 3_000_000), ("minutes", 15.0)])
def test_there_is_no_score_after_a_run_s_end(clock: str, end: float) -> None:
    assert score_at(GAMES, clock, 1.001 * end) == 20.5  # the last game ends a little before the run does
    assert score_at(GAMES, clock, 1.1 * end) is None


def test_minute_of_a_game_is_interpolated_between_the_rows_of_the_log() -> None:
    log = pl.DataFrame({"env_frames": [1_000, 2_000], "elapsed_seconds": [60.0, 240.0]})
    games = pl.DataFrame({"env_frames": [500, 1_500, 2_000]})
    assert minutes_of(games, log).to_list() == [0.5, 2.5, 4.0]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("train pqn --plain --set game=pong --set seed=3", ("pqn", 3)),
        ("train runs/pong_quick.toml --plain", ("pong_quick", 1)),
    ],
)
def test_run_is_named_by_its_command(command: str, named: tuple[str, int]) -> None:
    assert spec_and_seed(command) == named


def test_row_has_the_scores_by_frames_or_by_minutes_and_at_the_end() -> None:
    by_frames, by_minutes = (found([RUN]).splitlines()[2] for found in (table, minutes_table))
    assert by_frames == "| PQN, seed 2 | 5.5 | 10.5 | 20.5 | – | – | 20.5 |"
    assert by_minutes == "| PQN, seed 2 | 5.5 | 10.5 | 20.5 | 20.5 |"


def test_page_says_how_a_run_was_made_and_resumed() -> None:
    said = description(RUN)
    assert "3,000,000 frames in 15 minutes; EPYC (avx2), threads: 2" in said
    assert "; resumes: 1; last evaluation −20.5 ± 0.5, 10 games" in said


@is_kept
def test_page_is_what_the_tables_make() -> None:
    found = page(list(kept_runs(RESULTS)), list(timed_runs(RESULTS)))
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == found
