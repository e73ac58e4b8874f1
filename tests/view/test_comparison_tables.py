"""The figures of a comparison in the terminal, each below its title."""

import re
from pathlib import Path

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


@pytest.mark.parametrize(
    ("titles", "places"),
    [
        (["mean", "median", "IQM", "quartiles", "best"], (0, 1, 2, 4)),
        (["IQM", "mean", "median", "optimality", "gap"], (0, 1, 2, 3)),
    ],
)
def test_each_interval_is_below_its_figure_and_begins_with_its_lower_end(
    lines: list[str], titles: list[str], places: tuple[int, ...]
) -> None:
    figures = [float(figures_below(lines, titles)[place]) for place in places]
    below = lines[[line.split() for line in lines].index(titles) + 3]
    intervals = [(float(low), float(high)) for low, high in re.findall(r"\[([\d.]+), ([\d.]+)\]", below)]
    assert all(low <= figure <= high for figure, (low, high) in zip(figures, intervals, strict=True))


def printed(runs: list[Path], at_frames: int | None = None) -> str:
    console = Console(width=80)
    with console.capture() as captured:
        console.print(comparison_view(compare(runs, human_table="atari57", at_frames=at_frames)))
    return captured.get()


def test_seeds_without_a_score_are_counted(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / str(seed), [1.0, 2.0], overrides=[f"seed={seed}"], finished=seed < 3)
        for seed in range(1, 6)
    ]
    assert "A · n = 2 of 5 · final evaluation at 1M" in printed(runs)


def test_shared_games_beyond_the_first_five_are_counted(tmp_path: Path) -> None:
    games = ("alien", "amidar", "assault", "asterix", "asteroids", "atlantis", "bank_heist")
    runs = [make_run(tmp_path / game, [1.0], overrides=[f"game={game}"]) for game in games]
    shown = " ".join(printed(runs).split())
    assert "1 human (atari57); alien, amidar, assault, asterix, asteroids and 2 more" in shown


def test_interval_of_a_probability_of_improvement_begins_with_its_lower_end(tmp_path: Path) -> None:
    scores = {"false": (1.0, 2.0, 3.0), "true": (2.0, 2.5, 9.0)}
    runs = [
        make_run(tmp_path / f"{double}{seed}", [last], overrides=[f"seed={seed}", f"toggles.double={double}"])
        for double, of_seeds in scores.items()
        for seed, last in enumerate(of_seeds)
    ]
    found = re.search(r"A\*? · (0\.\d\d) \[(0\.\d\d), (1\.00)\]", printed(runs))
    assert found is not None
    assert (found[1], float(found[2]) < 0.72) == ("0.72", True)


def test_time_to_a_score_has_frames_and_hours(lines: list[str]) -> None:
    assert "  20.0 after 500k frames and 1.00 hours (median)" in [line.rstrip() for line in lines]


def test_score_of_a_verdict_has_the_frames_over_which_it_is_averaged(tmp_path: Path) -> None:
    returns = [-20.0, -20.0, -20.0, 1.0, 12.0, 8.0]
    run = make_run(tmp_path / "run", returns, period_frames=2_000_000)
    shown = " ".join(printed([run], at_frames=10_000_000).split())
    assert "on track 5.3 (0.1 to 11.8) of dqn, 3 seeds, at 10M; nnabla-rl, DQN and Double DQN" in shown
    assert "; here: 7.0 over 8M to 12M frames" in shown
