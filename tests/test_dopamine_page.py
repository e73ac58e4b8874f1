"""The page of runs with Dopamine's settings: scores by iterations, verdicts, and what its tables make."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from keep_dopamine import (
    KEPT,
    PAGE,
    RESULTS,
    DopamineRun,
    iterations,
    keep,
    kept_runs,
    page,
    score_at,
    table,
    tally,
)


def iterations_of(**means: float) -> pl.DataFrame:
    """The mean returns of iterations, by their ends in millions of frames: `m2=7.0`."""
    ends = [1_000_000 * int(name.removeprefix("m")) for name in means]
    return pl.DataFrame({"env_frames": ends, "mean_return": [*means.values()]})


def run_of(**means: float) -> DopamineRun:
    made = {"run": "dopamine_dqn_breakout_seed1", "game": "breakout", "seed": 1}
    return DopamineRun(made=made, iterations=iterations_of(**means))


def test_iteration_has_the_games_that_ended_in_its_million_frames(tmp_path: Path) -> None:
    games = ["env_frames,episode_return", "999999,1.0", "1000000,3.0", "1000004,10.0", "2000004,99.0"]
    (tmp_path / "train_log.csv").write_text("\n".join(games))
    (tmp_path / "throughput_log.csv").write_text("env_frames,elapsed_seconds\n2000000,9.0")
    assert iterations(tmp_path).rows() == [(1_000_000, 2, 2.0), (2_000_000, 1, 10.0)]


def test_iteration_that_is_not_over_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "train_log.csv").write_text("env_frames,episode_return\n500000,1.0\n1500000,3.0")
    (tmp_path / "throughput_log.csv").write_text("env_frames,elapsed_seconds\n1990000,9.0")
    assert iterations(tmp_path).rows() == [(1_000_000, 1, 1.0)]


def test_run_without_an_iteration_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train_log.csv").write_text("env_frames,episode_return\n500000,1.0")
    (tmp_path / "throughput_log.csv").write_text("env_frames,elapsed_seconds\n600000,9.0")
    with pytest.raises(SystemExit, match="no run has completed a million frames"):
        keep([tmp_path], tmp_path / "kept")
    assert capsys.readouterr().out == f"{tmp_path}: no million frames yet; left out\n"


def test_score_below_ten_million_frames_is_that_of_one_iteration() -> None:
    means = iterations_of(m1=1.0, m2=2.0)
    assert [score_at(means, 1_000_000 * each) for each in (1, 2, 5)] == [1.0, 2.0, None]


def test_score_at_ten_million_frames_is_the_mean_of_five_iterations() -> None:
    means = iterations_of(m7=100.0, m8=1.0, m9=2.0, m10=3.0, m11=4.0, m12=6.0, m13=100.0)
    assert score_at(means, 10_000_000) == pytest.approx(3.2)


def test_run_that_has_come_to_eleven_million_frames_has_no_score_at_ten() -> None:
    assert score_at(iterations_of(m8=1.0, m9=2.0, m10=3.0, m11=4.0), 10_000_000) is None


def test_row_of_a_run_has_a_verdict_at_each_of_the_published_frames() -> None:
    row = table([run_of(m1=1.8, m2=5.5)]).splitlines()[2]
    assert row == "| breakout | DQN, seed 1 | 1.8, on track | 5.5, just below |" + " – |" * 8


def test_published_seeds_stand_below_the_runs_of_their_agent() -> None:
    assert (
        table([run_of(m1=1.8)])
        .splitlines()[3]
        .startswith("|  | DQN, Dopamine (JAX) | 1.8 [1.6, 1.9] | 7.1 [5.6, 8.1] | 14.2 [")
    )


def test_verdicts_are_counted_but_those_at_one_million_frames() -> None:
    runs = [run_of(m1=99.0, m2=7.0), run_of(m1=1.8, m2=6.0), run_of(m1=1.8, m2=1.0), run_of(m1=1.8)]
    assert tally(runs) == "Verdicts from 2M frames on: 2 on track, 1 below."


@pytest.mark.skipif(not (RESULTS / KEPT / "runs.csv").exists(), reason="no run is kept yet")
def test_page_is_what_the_tables_make() -> None:
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(kept_runs(RESULTS))
