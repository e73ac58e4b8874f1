"""The page of Track A at ten million frames: verdicts on scores, and what its tables make."""

import re
import sys
from pathlib import Path

import polars as pl
import pytest
import torch

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
sys.path.append(str(Path(__file__).parents[1] / "docs/results/track_a/doubled_loss"))
from doubled_loss import doubled_error
from keep_pqn import number
from keep_track_a import KEPT, PAGE, RESULTS, keep, kept_runs, kept_updates, updates
from track_a_page import Score, page, score_at, verdict_of

from atari_dqn.compare.reference.studies import Figure

FIGURE = Figure(
    study="a", agent="dqn", game="pong", env_frames=1_000_000, mean=3.0, lowest=2.0, highest=4.0, n=3
)


@pytest.mark.parametrize(
    ("score", "cell"),
    [(6.0, "6.0, inside"), (6.1, "6.1, above"), (0.0, "0.0, inside"), (-0.1, "−0.1, **below**"), (None, "–")],
)
def test_score_is_inside_the_published_range_widened_by_its_width(score: float | None, cell: str) -> None:
    assert verdict_of(None if score is None else Score(mean=score, is_cut=False), FIGURE) == cell


def test_score_of_cut_games_has_no_verdict() -> None:
    rows = pl.DataFrame({"env_frames": [1_000_400], "mean_return": [3.0], "frame_caps": [1]})
    assert verdict_of(score_at(rows, 1), FIGURE) == "3.0†"


def test_score_below_ten_million_frames_is_that_of_one_evaluation() -> None:
    rows = pl.DataFrame(
        {"env_frames": [1_000_400, 2_000_400], "mean_return": [1.0, 2.0], "frame_caps": [0, 0]}
    )
    first, second, fifth = (score_at(rows, millions) for millions in (1, 2, 5))
    assert (first, second, fifth) == (Score(mean=1.0, is_cut=False), Score(mean=2.0, is_cut=False), None)


def test_score_at_ten_million_frames_is_a_mean_of_evaluations_as_the_published_one() -> None:
    frames = [7_000_000, 8_000_000, 9_000_000, 10_000_000]
    rows = pl.DataFrame(
        {"env_frames": frames, "mean_return": [100.0, 1.0, 2.0, 6.0], "frame_caps": [1, 0, 0, 0]}
    )
    assert score_at(rows, 10) == Score(mean=3.0, is_cut=False)
    assert score_at(rows.head(3), 10) is None


def test_run_without_an_evaluation_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "eval_log.csv").write_text("env_frames,mean_return\n")
    with pytest.raises(SystemExit, match="no evaluated run"):
        keep([tmp_path / "run"], tmp_path / "kept")
    assert capsys.readouterr().out == f"{tmp_path / 'run'}: not evaluated yet; left out\n"


def test_updates_are_averaged_over_the_frames_up_to_the_end_of_an_interval(tmp_path: Path) -> None:
    rows = ["100000,,", "200000,1.0,10.0", "200004,2.0,30.0", "400000,4.0,50.0"]
    (tmp_path / "update_log.csv").write_text("\n".join(["env_frames,loss,grad_norm", *rows]))
    assert updates(tmp_path).rows() == [(200_000, 1.0, 10.0), (400_000, 3.0, 40.0)]


def test_gradient_of_the_doubled_loss_is_twice_the_error_clipped() -> None:
    errors = torch.tensor([-3.0, -0.5, -0.2, 0.0, 0.25, 0.7], requires_grad=True)
    doubled_error(errors).sum().backward()
    assert errors.grad.tolist() == pytest.approx([-1.0, -1.0, -0.4, 0.0, 0.5, 1.0])


@pytest.mark.skipif(not (RESULTS / KEPT / "runs.csv").exists(), reason="no run of Track A is kept yet")
def test_page_is_what_the_tables_make() -> None:
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(kept_runs(RESULTS), kept_updates(RESULTS))


def test_standard_error_of_an_evaluation_is_at_most_that_of_the_page() -> None:
    errors = [
        run.evaluations["std_return"] / run.evaluations["episodes"].sqrt() for run in kept_runs(RESULTS)
    ]
    stated = re.search(r"standard error of at most ([\d.]+);", (RESULTS / PAGE).read_text(encoding="utf-8"))
    assert stated is not None
    assert f"{pl.concat(errors).max():.1f}" == stated[1]


def test_random_play_scores_what_the_page_says() -> None:
    prefill = {run.game: run.games.filter(pl.col("env_frames") <= 200_000) for run in kept_runs(RESULTS)}
    pong, breakout = (prefill[game]["episode_return"].mean() for game in ("pong", "breakout"))
    stated = f"about {number(pong)} on Pong and {number(breakout)} on Breakout"
    assert stated in (RESULTS / PAGE).read_text(encoding="utf-8")
