"""The figures of a comparison in the terminal, each below its title."""

import pytest
from broken_runs import make_run
from rich.console import Console

from atari_dqn.compare.comparison import compare
from atari_dqn.view.comparison_tables import comparison_view

RETURNS = (0.0, 1.0, 2.0, 9.0, 18.0)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The comparison of five seeds of one agent; each had 20 points at 500k frames, less at the end."""
    root = tmp_path_factory.mktemp("runs")
    runs = [
        make_run(root / str(seed), [20.0, last], overrides=[f"seed={seed}"])
        for seed, last in enumerate(RETURNS)
    ]
    console = Console(width=80)
    with console.capture() as captured:
        console.print(comparison_view(compare(runs, human_table="atari57", to_score=20.0)))
    return captured.get().splitlines()


def figures_below(lines: list[str], titles: list[str]) -> list[str]:
    """Return the figures below the name that follows a line of titles."""
    place = [line.split() for line in lines].index(titles)
    return lines[place + 2].split()


def test_scores_are_below_their_titles(lines: list[str]) -> None:
    titles = ["mean", "median", "IQM", "quartiles", "best"]
    assert figures_below(lines, titles) == ["6.0", "2.0", "4.0", "1.0", "20.0"]


def test_aggregates_are_below_their_titles(lines: list[str]) -> None:
    # random is −20.7 and human 14.6; the gap is that of the four seeds below human
    titles = ["IQM", "mean", "median", "optimality", "gap"]
    assert figures_below(lines, titles) == ["0.700", "0.756", "0.756", "0.263"]


def test_time_to_a_score_has_frames_and_hours(lines: list[str]) -> None:
    assert "  20.0 after 500k frames and 1.00 hours (median)" in [line.rstrip() for line in lines]
