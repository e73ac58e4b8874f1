"""Caveats that several groups share are one line for readers, and a line each for programs."""

from pathlib import Path

from atari_dqn.compare.caveats import Caveat, merged
from atari_dqn.compare.comparison import compare
from runs import make_run


def lines(*caveats: Caveat, num_groups: int = 9) -> list[str]:
    return list(merged(caveats, num_groups))


def test_groups_with_the_same_caveat_are_listed_by_game() -> None:
    groups = [("pong", "dqn"), ("breakout", "dqn"), ("pong", "c51")]
    shared = [Caveat("n = 1", game=game, method=method) for game, method in groups]
    assert lines(*shared) == ["pong dqn · c51; breakout dqn: n = 1"]


def test_a_caveat_of_every_group_names_none() -> None:
    shared = [Caveat("n = 1", game="pong", method=method) for method in ("dqn", "c51")]
    assert lines(*shared, num_groups=2) == ["all groups: n = 1"]


def test_the_caveat_of_the_only_group_names_it() -> None:
    assert lines(Caveat("n = 1", game="pong", method="dqn"), num_groups=1) == ["pong dqn: n = 1"]


def test_caveats_about_games_and_methods_are_not_merged() -> None:
    alone = [Caveat("without it", game="pong"), Caveat("without it", method="dqn"), Caveat("without it")]
    assert lines(*alone) == ["pong: without it", "dqn: without it", "without it"]


def test_the_same_caveat_twice_is_shown_once() -> None:
    twice = Caveat("n = 1", game="pong", method="dqn")
    assert lines(twice, twice) == ["pong dqn: n = 1"]


def test_a_comparison_has_merged_caveats_and_a_warning_for_each_group(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / f"{double}", [1.0], overrides=[f"toggles.double={double}"])
        for double in ("false", "true")
    ]
    found = compare(runs, human_table="atari57")
    few = "n = 1: fewer than 3 seeds say little about the spread"
    assert [each for each in found.warnings if few in each] == [
        f"pong pong_trackA double={double}: {few}" for double in ("false", "true")
    ]
    assert [each for each in found.caveats if few in each] == [f"all groups: {few}"]
