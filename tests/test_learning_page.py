"""Figures of the page on what is learned are those of the tables and files that it names."""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pytest
from evidence import RESULTS, cells, disagreements, kept, text_of

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from keep import WINDOW_EPISODES
from keep_atari100k import AGENTS, FOLDER, markdown, rows_of, write_csv

from atari_dqn.compare.statistics import Scores, column, difference

PAGE = "results/learning.md"
CSV_MINUTES = 0.006
"""The rounding of the minutes in a table of games."""
GAMES = {"pong": "Pong", "breakout": "Breakout", "boxing": "Boxing", "freeway": "Freeway", "qbert": "Q*bert"}
FIRST_COMMANDS = {"first_command": "AVX-512 with bf16", "first_command_avx2": "of the fourth generation held"}


def table(name: str) -> pl.DataFrame:
    return pl.read_csv(RESULTS / f"{name}.csv", infer_schema_length=None)


def final(folder: str, run: str) -> dict[str, Any]:
    rows = table(f"{folder}/evaluations").filter(pl.col("run") == run, pl.col("eval_type") == "final")
    return rows.row(0, named=True)


def games(folder: str, run: str) -> pl.DataFrame:
    rows = table(f"{folder}/games").filter(pl.col("run") == run)
    return rows.with_columns(last=pl.col("episode_return").rolling_mean(WINDOW_EPISODES))


def first_past(rows: pl.DataFrame, score: float) -> dict[str, Any] | None:
    past = rows.filter(pl.col("last") > score)
    return past.row(0, named=True) if len(past) else None


def predictions(run: str, *, least: int, most: int) -> pl.DataFrame:
    rows = table("pong_1m/predictions").filter(pl.col("run") == run)
    return rows.filter(pl.col("env_frames").is_between(least, most))


@pytest.mark.parametrize(
    ("file", "after", "label", "figure"),
    [
        ("first_command", "2,400,000 frames of the spec.", "minutes", "minutes"),
        ("first_command", "2,400,000 frames of the spec.", "frames", "env_frames"),
        ("first_command_bf16", "2,400,000 frames of the spec.", "earlier, in bf16: minutes", "minutes"),
        ("first_command_bf16", "2,400,000 frames of the spec.", "earlier, in bf16: frames", "env_frames"),
        ("first_command_avx2", "no seed is a repetition", "minutes", "minutes"),
        ("first_command_avx2", "no seed is a repetition", "frames", "env_frames"),
    ],
)
def test_row_of_the_first_command_is_that_of_its_file(file: str, after: str, label: str, figure: str) -> None:
    found = [run[figure] for run in kept(file)["seeds"].values()]
    row = cells(PAGE, after, label)
    assert disagreements(row, [value for value in found if value is not None]) == []
    assert row.count("–") == found.count(None)


@pytest.mark.parametrize(("file", "label"), [("first_command", "AVX-512"), ("first_command_avx2", "AVX2")])
def test_readme_has_the_minutes_of_the_first_command(file: str, label: str) -> None:
    expected: list[float] = []
    for run in kept(file)["seeds"].values():
        expected += [run["minutes"]] if run["reached"] else [2_400_000, run["trained_minutes"]]
    assert disagreements(cells("../README.md", "## Results", label), expected) == []


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("first_command", "at {} frames/s with the evaluations. Seed 2 ended"),
        ("first_command_bf16", "bf16 on this processor, with {} frames/s"),
        ("first_command_avx2", "in the median, at {} frames/s with the evaluations. Another"),
    ],
)
def test_speed_of_the_first_command_is_that_of_its_file(file: str, sentence: str) -> None:
    runs = kept(file)["seeds"].values()
    rates = [round(run["trained_frames"] / run["trained_minutes"] / 60, -2) for run in runs]
    assert sentence.format(f"{min(rates):,.0f} to {max(rates):,.0f}") in text_of(PAGE)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("first_command", "The median is {} minutes"),
        ("first_command_avx2", "all five seeds reach 12, after {} minutes in the median"),
    ],
)
def test_median_counts_a_seed_that_does_not_win_as_the_slowest(file: str, sentence: str) -> None:
    minutes = [run["minutes"] or float("inf") for run in kept(file)["seeds"].values()]
    assert sentence.format(f"{median(minutes):.1f}") in text_of(PAGE)


@pytest.mark.parametrize(
    ("run", "after", "label"),
    [
        ("seed1", "Frames/s of the whole training: 5,761", "1"),
        ("seed2", "Frames/s of the whole training: 5,761", "2"),
        ("seed3", "Frames/s of the whole training: 5,761", "3"),
        ("xeon_seed1", "before there were kernels, 1,600,000 frames", "1"),
        ("xeon_seed2", "before there were kernels, 1,600,000 frames", "2"),
    ],
)
def test_row_of_an_earlier_run_is_that_of_its_tables(run: str, after: str, label: str) -> None:
    rows, score = games("pong_quick_runs", run), final("pong_quick_runs", run)
    past_12, past_18 = first_past(rows, 12), first_past(rows, 18)
    expected: list[float] = [past_12["minutes"], past_12["env_frames"]] if past_12 else []
    expected += [past_18["minutes"]] if past_18 else []
    expected += [rows["last"][-1], rows["minutes"][-1], score["mean_return"], score["std_return"]]
    row = cells(PAGE, after, label)
    found = disagreements(row, expected)
    assert all(abs(deviation(each)) < 0.05 + CSV_MINUTES for each in found), found
    assert row.count("–") == (past_12 is None) + (past_18 is None)


def deviation(disagreement: str) -> float:
    """Read how far a figure is from its value; infinity if figures are missing."""
    figure, is_not, value = disagreement.replace("−", "-").replace(",", "").partition(" is not ")
    return float(figure) - float(value) if is_not else float("inf")


@pytest.mark.parametrize(("run", "label"), [("dqn", "plain DQN"), ("iqn", "IQN"), ("rainbow", "Rainbow")])
def test_row_of_a_million_frames_is_that_of_its_tables(run: str, label: str) -> None:
    score = final("pong_1m", run)
    expected = [games("pong_1m", run)["last"][-1], score["mean_return"], score["std_return"]]
    assert disagreements(cells(PAGE, "## What do three algorithms learn", label), expected) == []


@pytest.mark.parametrize(
    ("run", "least", "most", "sentence"),
    [
        ("rainbow", 110_000, 450_000, "action's value is 0.001 to 0.002 above the next one's"),
        ("dqn", 110_000, 450_000, "(plain DQN: 0.007 to 0.015)"),
        ("rainbow", 590_000, 1_000_000, "from 600,000 on it is 0.018 to 0.027"),
    ],
)
def test_gap_between_actions_is_that_of_the_predictions(
    run: str, least: int, most: int, sentence: str
) -> None:
    gaps = predictions(run, least=least, most=most)["action_gap"].to_list()
    start = sentence.partition("0.0")[0]
    assert f"{start}{min(gaps):.3f} to {max(gaps):.3f}" in sentence
    assert sentence in text_of(PAGE)


def test_predicted_returns_of_rainbow_spread_as_the_page_says() -> None:
    spreads = predictions("rainbow", least=0, most=530_000)["std_return"].to_list()
    assert f"5.3 at first, on a support of ±10, and comes down to {spreads[-1]:.1f} only after 520,000" in (
        text_of(PAGE)
    )
    assert (round(spreads[0], 1), min(spreads) == spreads[-1]) == (5.3, True)


TRACK_C = table("atari100k/table").rows(named=True)


@pytest.mark.parametrize("row", TRACK_C, ids=[f"{row['agent']} {row['game']}" for row in TRACK_C])
def test_row_of_track_c_is_that_of_its_table(row: dict[str, Any]) -> None:
    scores = [float(each.partition(":")[2]) for each in row["scores"].split()]
    label = f"{GAMES[row['game']]} | {AGENTS[row['agent']]}"
    assert disagreements(cells(PAGE, "## Does Track C score", label), [*scores, row[row["target"]]]) == []


def test_one_published_mean_is_outside_the_seeds_and_none_outside_students_interval() -> None:
    outside = [(row["game"], row["agent"]) for row in TRACK_C if row["in_bootstrap"] == "outside"]
    assert (outside, {row["in_student"] for row in TRACK_C}) == ([("pong", "drq_eps")], {"inside"})


def test_tables_of_track_c_are_what_its_evaluations_make(tmp_path: Path) -> None:
    rows = list(rows_of(FOLDER / "evaluations.csv"))
    rows.sort(key=lambda row: (str(row["game"]), list(AGENTS).index(str(row["agent"]))))
    write_csv(rows, tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == (FOLDER / "table.csv").read_text()
    assert "\n".join(markdown(rows)) + "\n" == (FOLDER / "table.md").read_text(encoding="utf-8")


def test_time_of_one_run_of_der_is_that_of_its_tables() -> None:
    minutes = games("der_alone", "der_pong_seed1")["minutes"][-1]
    score = final("der_alone", "der_pong_seed1")["mean_return"]
    text = text_of(PAGE)
    assert f"took {minutes:.1f} minutes for the 400,000 frames" in text
    assert f"the 100 games, which score {score:.1f}".replace("-", "−") in text


def mean_and_error(runs: Sequence[dict[str, float]], frames: str) -> list[float]:
    scores = pl.Series([run[frames] for run in runs])
    return [float(scores.mean()), float(scores.std()) / len(scores) ** 0.5]  # type: ignore[arg-type]


@pytest.mark.parametrize("frames", ["12,000", "24,000"])
def test_scores_on_catch_are_those_of_their_file(frames: str) -> None:
    settings = kept("learning_catch")["scores"].values()
    expected = [figure for runs in settings for figure in mean_and_error(runs, frames.replace(",", ""))]
    assert disagreements(cells(PAGE, "## Do more environments", f"after {frames} frames"), expected) == []


TOGGLES = kept("learning_toggles")["scores"]
LABELS = {
    "plain DQN": "plain DQN", "qr_dqn": "`qr_dqn`, 50 quantiles", "iqn": "`iqn`, 8, 8, 8",
    "munchausen, iqn": "`munchausen` and `iqn`, 8, 8, 8", "random_shifts": "`random_shifts`, 1 pixel",
    "Rainbow": "Rainbow",
}  # fmt: skip
"""Rows of toggles that are not called by the toggle alone."""


def test_two_differences_from_plain_dqn_are_shown() -> None:
    def scores(toggle: str, frames: str) -> Scores:
        return column([run[frames] for run in TOGGLES[toggle]])

    cases = [(toggle, frames) for toggle in list(TOGGLES)[1:] for frames in TOGGLES[toggle][0]]
    found = {case: difference(scores(*case), scores("plain DQN", case[1])).interval for case in cases}
    shown = [case for case, each in found.items() if each and (each.low > 0 or each.high < 0)]
    assert (len(cases), shown) == (36, [("n_step", "6000"), ("iqn", "12000")])
    assert "Of the 36 differences from plain DQN in this table" in text_of("algorithms.md")


@pytest.mark.parametrize("toggle", TOGGLES)
def test_scores_of_a_toggle_are_those_of_their_file(toggle: str) -> None:
    runs = TOGGLES[toggle]
    expected = [figure for frames in runs[0] for figure in mean_and_error(runs, frames)]
    row = cells("algorithms.md", "## What each changes", LABELS.get(toggle, f"`{toggle}`"))
    assert disagreements(row, expected) == []
