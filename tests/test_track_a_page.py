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
from equal_frames import evaluations_at
from keep_pqn import number
from keep_track_a import KEPT, PAGE, RESULTS, keep, kept_runs, kept_updates, updates
from track_a_page import (
    Score,
    TrackARun,
    cell_of,
    page,
    published,
    score_at,
    training_return,
    verdict_of,
)

from atari_dqn.compare.reference.studies import Figure, human_random

FIGURE = Figure(
    study="a", agent="dqn", game="pong", env_frames=1_000_000, mean=3.0, lowest=2.0, highest=4.0, n=3
)


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (2.0, "on track"), (4.0, "on track"), (4.1, "just above"), (6.1, "**above**"),
        (1.9, "just below"), (0.0, "just below"), (-0.1, "**below**"),
    ],
)  # fmt: skip
def test_verdict_compares_with_the_lowest_and_the_highest_published_seed(score: float, verdict: str) -> None:
    assert verdict_of(score, FIGURE) == verdict


def run_of(
    env_frames: int = 1_000_400, *, mean: float = 3.0, frame_caps: int = 0, resize: str = "area"
) -> TrackARun:
    evaluations = pl.DataFrame(
        {"env_frames": [env_frames], "mean_return": [mean], "frame_caps": [frame_caps]}
    )
    return TrackARun(made={"resize": resize}, games=pl.DataFrame(), evaluations=evaluations)


def test_score_under_the_protocol_of_the_published_one_has_a_verdict() -> None:
    assert cell_of(run_of(), 1, FIGURE) == "3.0, on track"


def test_score_of_cut_games_has_no_verdict() -> None:
    assert cell_of(run_of(frame_caps=1), 1, FIGURE) == "3.0†"


def test_score_on_frames_resized_otherwise_has_no_verdict() -> None:
    assert cell_of(run_of(resize="bilinear"), 1, FIGURE) == "3.0‡"


@pytest.mark.parametrize(("last_frames", "cell"), [(11_000_000, "3.0"), (12_000_000, "3.0, on track")])
def test_score_at_ten_million_frames_has_a_verdict_once_the_averaged_frames_are_over(
    last_frames: int, cell: str
) -> None:
    evaluations = pl.DataFrame(
        {"env_frames": [10_000_000, last_frames], "mean_return": [3.0, 3.0], "frame_caps": [0, 0]}
    )
    run = TrackARun(made={"resize": "area"}, games=pl.DataFrame(), evaluations=evaluations)
    assert cell_of(run, 10, FIGURE) == cell


def test_run_that_has_not_come_so_far_has_no_score() -> None:
    assert cell_of(run_of(), 2, FIGURE) == "–"


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


def test_two_runs_of_one_name_are_an_error_that_names_both(tmp_path: Path) -> None:
    runs = [tmp_path / "a" / "run", tmp_path / "b" / "run"]
    for run in runs:
        run.mkdir(parents=True)
        (run / "eval_log.csv").write_text("env_frames,mean_return\n1,2.0\n")
    with pytest.raises(SystemExit, match=f"{runs[0]} and {runs[1]} are both named run"):
        keep(runs, tmp_path / "kept")


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


def test_games_that_the_cap_ended_are_counted_on_the_page() -> None:
    (run,) = [
        each for each in kept_runs(RESULTS) if each.made["run"] == "trackA_lua_he_doubled_area_pong_seed1"
    ]
    averaged = evaluations_at(run.evaluations, 10)
    stated = f"the cap ended {averaged['frame_caps'].sum()} of the {averaged['episodes'].sum()} games"
    assert stated in (RESULTS / PAGE).read_text(encoding="utf-8")


def test_training_returns_on_breakout_are_what_the_page_says_of_them() -> None:
    name = "trackA_lua_he_doubled_area_breakout_seed1"
    (run,) = [each for each in kept_runs(RESULTS) if each.made["run"] == name]
    found = [f"{training_return(run, frames):.0f}" for frames in (6_000_000, 8_000_000, 10_000_000)]
    stated = "it is {} at 6M, {} at 8M and {} at 10M".format(*found)
    assert stated in " ".join((RESULTS / PAGE).read_text(encoding="utf-8").split())


def test_summary_counts_the_verdicts_of_the_nearest_settings() -> None:
    text = (RESULTS / PAGE).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and "resize by area, seed 1 |" in line]
    scores = [cell for row in rows if "on track" in row for cell in row.split("|")]
    words = ["on track", "just below", "**below**", "above"]
    assert [sum(word in cell for cell in scores) for word in words] == [11, 5, 2, 0]
    stated = "of their eighteen scores with a verdict, up to 9M frames, eleven are on track, five just below"
    assert f"{stated}, two below, and none is above" in " ".join(text.split())


def scores(evaluations: pl.DataFrame, *millions: int) -> list[str]:
    at = [evaluations.filter(env_frames=1_000_000 * each) for each in millions]
    return [number(each["mean_return"].item()) for each in at]


def test_breakout_from_8m_to_10m_is_what_the_page_says_of_it() -> None:
    name, millions = "trackA_lua_he_doubled_area_breakout_seed1", (8, 9, 10)
    (run,) = [each for each in kept_runs(RESULTS) if each.made["run"] == name]
    rows = pl.read_csv(RESULTS / KEPT / "published.csv").filter(game="breakout", seed=100)
    here, there = scores(run.evaluations, *millions), scores(rows, *millions, 11)
    stated = "here it is {}, {} and {}, there, with seed 100, {}, {} and {}, before {} at 11M"
    text = " ".join((RESULTS / PAGE).read_text(encoding="utf-8").split())
    assert stated.format(*here, *there) in text


def test_random_play_is_what_the_page_says_of_it() -> None:
    games = ("pong", "breakout")
    played = [pl.concat(run.games for run in kept_runs(RESULTS) if run.game == game) for game in games]
    here = [each.filter(pl.col("env_frames") <= 200_000)["episode_return"].mean() for each in played]
    table = [human_random(game, "atari57").random for game in games]
    stated = (
        f"random play is on track, which scores about {number(here[0])} on Pong and {number(here[1])} on "
        f"Breakout here, and {number(table[0])} and {number(table[1])} in the published table"
    )
    assert stated in " ".join((RESULTS / PAGE).read_text(encoding="utf-8").split())
    for game, *scores in zip(games, here, table, strict=True):
        assert {verdict_of(score, published(game)[1]) for score in scores} == {"on track"}
