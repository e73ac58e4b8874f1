"""Each figure of a group is in its own column of the page and of the CSV file."""

import csv
import re

import pytest

from atari_dqn.compare.comparison import Comparison, compare
from atari_dqn.compare.document import comparison_csv
from atari_dqn.compare.output.html_tables import scores, times
from runs import make_run


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two seeds, evaluated every 500,000 frames, an hour each: each reaches 9 points before its end."""
    root = tmp_path_factory.mktemp("runs")
    runs = [
        make_run(root / str(seed), returns, overrides=[f"seed={seed}"])
        for seed, returns in ((1, [9.0, 4.0, 1.0]), (2, [3.0, 9.0, 2.0]))
    ]
    return compare(runs, human_table="atari57", to_score=9.0)


def cells(table: str) -> dict[str, str]:
    """Return the cells of the only row of a table by their titles; an interval follows its figure."""
    titles, found = (re.findall(f"<{tag}>(.*?)</{tag}>", table) for tag in ("th", "td"))
    plain = [" ".join(re.sub("<.*?>", " ", cell).split()) for cell in found]
    return dict(zip(titles, plain, strict=True))


def test_scores_of_the_page_are_below_their_titles(comparison: Comparison) -> None:
    row = cells(scores(comparison.results))
    digest = row.pop("protocol")
    assert len(digest) == 12
    assert row == {
        "group": "pong_trackA A",
        "n": "2",
        "frames": "1.5M",
        "mean": "1.5 [1.0, 2.0]",
        "median": "1.5 [1.0, 2.0]",
        "IQM": "1.5 [1.0, 2.0]",
        "quartiles": "1.2 to 1.8",
        "best (a maximum)": "9.0 [9.0, 9.0]",
    }


def test_times_of_the_page_are_below_their_titles(comparison: Comparison) -> None:
    assert cells(times(comparison.results)) == {
        "group": "pong_trackA A",
        "to score": "9.0",
        "reached": "2 of 2",
        "median frames": "750k",
        "median hours": "1.50",
    }


def test_figures_of_the_csv_file_are_below_their_titles(comparison: Comparison) -> None:
    (row,) = csv.DictReader(comparison_csv(comparison).splitlines())
    expected = {
        "n": 2, "env_frames": 1_500_000, "mean": 1.5, "mean_low": 1.0, "mean_high": 2.0, "quartile_1": 1.25,
        "quartile_3": 1.75, "best_mean": 9.0, "best_mean_low": 9.0, "best_mean_high": 9.0, "frame_caps": 0,
        "to_score": 9.0, "reached": 2, "median_frames_to_score": 750_000, "median_hours_to_score": 1.5,
    }  # fmt: skip
    assert {name: float(row[name]) for name in expected} == expected
