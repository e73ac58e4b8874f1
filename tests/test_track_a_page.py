"""The page of Track A at ten million frames: verdicts on scores, and what its tables make."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
import pytest
import torch

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
sys.path.append(str(Path(__file__).parents[1] / "docs/results/track_a/doubled_loss"))
from doubled_loss import doubled_error
from equal_frames import evaluations_at, verdict_of
from keep_pqn import number
from keep_track_a import KEPT, PAGE, RESULTS, draw, keep, kept_runs, kept_updates, updates
from track_a_page import (
    Score,
    TrackARun,
    cell_of,
    figure_of,
    page,
    progress,
    resumes,
    score_at,
    tally,
    training_return,
)

from atari_dqn.compare.reference.studies import Figure, human_random

BREAKOUT = "trackA_lua_he_doubled_area_breakout_seed1"
FIGURE = Figure(
    study="a", agent="dqn", game="pong", env_frames=1_000_000, mean=3.0, lowest=2.0, highest=4.0, n=3
)


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (2.0, "on track"), (4.0, "on track"), (4.1, "just above"), (6.1, "above"),
        (1.9, "just below"), (0.0, "just below"), (-0.1, "below"),
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


def test_score_far_from_the_published_ones_is_in_bold() -> None:
    assert cell_of(run_of(mean=-3.0), 1, FIGURE) == "−3.0, **below**"


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


def test_score_at_ten_million_frames_is_a_mean_up_to_twelve_million() -> None:
    means = {8: 1.0, 9: 2.0, 10: 3.0, 11: 4.0, 12: 6.0, 13: 100.0}
    rows = pl.DataFrame(
        {
            "env_frames": [1_000_000 * each for each in means],
            "mean_return": list(means.values()),
            "frame_caps": [0] * len(means),
        }
    )
    assert score_at(rows, 10) == Score(mean=3.2, is_cut=False)


@pytest.mark.parametrize(
    ("env_frames", "cell"), [(900_000, "3.0"), (1_100_000, "3.0, on track"), (1_100_400, "–")]
)
def test_score_is_of_an_evaluation_at_most_a_hundred_thousand_frames_away(env_frames: int, cell: str) -> None:
    assert cell_of(run_of(env_frames), 1, FIGURE) == cell


def games_of_run(*frames: int) -> TrackARun:
    """A run whose training games end at these frames; the n-th returns 2ⁿ."""
    games = pl.DataFrame({"env_frames": list(frames), "episode_return": [2.0**n for n in range(len(frames))]})
    return TrackARun(made={}, games=games, evaluations=run_of().evaluations)


def test_training_return_is_of_the_games_that_ended_in_the_200000_frames_before() -> None:
    run = games_of_run(199_996, 200_000, 200_004, 300_000, 400_000, 400_004)
    assert training_return(run, 400_000) == (4.0 + 8.0 + 16.0) / 3


def test_runs_that_have_not_come_to_ten_million_frames_are_counted() -> None:
    short = games_of_run(900_000, 2_500_000)
    finished = TrackARun(made={}, games=short.games, evaluations=run_of(10_000_000).evaluations)
    assert progress([finished, short, short]) == (
        "1 of 3 runs have come to 10 million frames; 7.5 million are trained in all."
    )


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ({"resumes": 0, "inexact_notices": 0}, ""),
        ({"resumes": 1, "inexact_notices": 0}, "; resumed once, exactly"),
        ({"resumes": 3, "inexact_notices": 2}, "; resumed 3 times; 2 notices that it may differ"),
    ],
)
def test_page_says_how_often_a_run_was_resumed(made: dict[str, int], text: str) -> None:
    assert resumes(made) == text


def test_curves_of_published_seeds_are_drawn_each_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["game,seed,env_frames,mean_return", "pong,1,1000000,3.0", "pong,1,2000000,4.0"]
    rows += ["pong,10,1000000,5.0", "pong,10,2000000,7.0", "breakout,1,1000000,9.0"]
    (tmp_path / "published.csv").write_text("\n".join(rows))
    monkeypatch.setattr(plt, "close", lambda figure: None)
    run = replace(
        games_of_run(500_000, 2_000_000),
        made={"game": "pong", "run": "trackA_pong_seed1", "seed": 1},
        evaluations=run_of(1_000_000, mean=6.0).evaluations,
    )
    draw([run], tmp_path / "curves.png")
    (axes,) = plt.gcf().axes
    monkeypatch.undo()
    plt.close("all")
    seeds = [(*map(tuple, line.get_data()),) for line in axes.lines if "nnabla" in str(line.get_label())]
    assert sorted(seeds) == [((1.0, 2.0), (3.0, 4.0)), ((1.0, 2.0), (5.0, 7.0))]
    here = [(*map(tuple, line.get_data()),) for line in axes.lines if "here" in str(line.get_label())]
    assert here == [((1.0,), (6.0,))]


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
    assert stated in " ".join((RESULTS / PAGE).read_text(encoding="utf-8").split())


def test_verdicts_on_the_runs_like_the_published_ones_are_counted() -> None:
    rows = pl.DataFrame(
        {
            "env_frames": [1_000_000, 2_000_000, 5_000_000],
            "mean_return": [1.0, 2.0, 99.0],
            "frame_caps": [0] * 3,
        }
    )
    made = {"run": "trackA_lua_he_doubled_area_breakout_seed1", "game": "breakout", "resize": "area"}
    run = TrackARun(made=made, games=pl.DataFrame(), evaluations=rows)
    other = TrackARun(made={**made, "run": "trackA_breakout_seed1"}, games=pl.DataFrame(), evaluations=rows)
    expected = (
        "2 verdicts from 2M to 10M frames: 1 on track, none just below, none below, none just above, 1 above"
    )
    assert tally([run, other]) == expected


def scores(evaluations: pl.DataFrame, *millions: int) -> list[str]:
    at = [evaluations.filter(env_frames=1_000_000 * each) for each in millions]
    return [number(each["mean_return"].item()) for each in at]


def test_breakout_from_8m_to_12m_is_what_the_page_says_of_it() -> None:
    (run,) = [each for each in kept_runs(RESULTS) if each.made["run"] == BREAKOUT]
    rows = pl.read_csv(RESULTS / KEPT / "published.csv").filter(game="breakout")
    here, there = (scores(each, 8, 9, 10, 11) for each in (run.evaluations, rows.filter(seed=100)))
    stated = "here it is {}, {} and {}, and then {} at 11M; there, with seed 100, {}, {}, {} and {}."
    text = " ".join((RESULTS / PAGE).read_text(encoding="utf-8").split())
    assert stated.format(*here, *there) in text


def test_breakout_games_of_more_than_100_points_are_counted_on_the_page() -> None:
    (run,) = [each for each in kept_runs(RESULTS) if each.made["run"] == BREAKOUT]
    spans = [
        run.games.filter(pl.col("env_frames").is_between(begin * 1e6, end * 1e6, closed="right"))
        for begin, end in ((7, 10), (10, 12))
    ]
    counts = [number for each in spans for number in ((each["episode_return"] > 100).sum(), len(each))]
    stated = "between 7M and 10M they are {} in {}, and between 10M and 12M {} in {}".format(*counts)
    assert stated in " ".join((RESULTS / PAGE).read_text(encoding="utf-8").split())


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
        assert {verdict_of(score, figure_of(game, 1)) for score in scores} == {"on track"}
