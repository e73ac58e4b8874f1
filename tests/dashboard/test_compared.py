"""What the pages say of comparisons of runs that go on, and next to published scores."""

import os
from pathlib import Path

from atari_dqn.dashboard.library import Library
from runs import make_run

# The pages are imported by their tests: NiceGUI takes each worker a second.


def test_final_evaluation_is_shown_though_no_update_follows_it(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.compared import compared

    table = make_run(tmp_path / "run", [-20.0, 5.0], finished=False) / "eval_log.csv"
    before, _ = compared(Library(tmp_path).readable())
    rows = table.read_text().splitlines(keepends=True)
    table.write_text("".join([*rows[:-1], rows[-1].replace("full", "final")]))
    later = table.stat().st_mtime + 1
    os.utime(table, (later, later))
    after, _ = compared(Library(tmp_path).readable())
    assert before is not None
    assert after is not None
    assert (before.results[0].last.values, after.results[0].last.values) == ([], [5.0])


def test_published_score_of_training_games_is_next_to_that_of_training_games_here(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.compared import compared
    from atari_dqn.dashboard.pages.games import _row

    make_run(tmp_path / "run", [6.0], spec="pong_trackB.toml", period_frames=4_000_000)
    comparison, _ = compared(Library(tmp_path).readable())
    assert comparison is not None
    published = _row(comparison.results[0])[-1]
    assert (
        "by Dopamine, JAX agents; training games, here -20.0 over 3M to 4M frames (other protocol"
        in published
    )


def test_best_of_a_group_is_the_mean_over_seeds_of_their_best_with_its_own_interval(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.compared import compared
    from atari_dqn.dashboard.pages.games import _TITLES, _row

    make_run(tmp_path / "1", [9.0, 1.0], overrides=["seed=1"])
    make_run(tmp_path / "2", [3.0, 2.0], overrides=["seed=2"])
    comparison, _ = compared(Library(tmp_path).readable())
    assert comparison is not None
    row = dict(zip(_TITLES, _row(comparison.results[0]), strict=True))
    assert (row["mean"], row["best (a maximum)"]) == ("1.5 [1.0, 2.0]", "6.0 [3.0, 9.0]")


def test_best_of_a_group_is_marked_where_the_cap_cut_its_games_alone(tmp_path: Path) -> None:
    from atari_dqn.dashboard.pages.compared import compared
    from atari_dqn.dashboard.pages.games import _TITLES, _row

    make_run(tmp_path / "run", [12.0, 3.0], frame_caps=(1, 0))
    comparison, _ = compared(Library(tmp_path).readable())
    assert comparison is not None
    row = dict(zip(_TITLES, _row(comparison.results[0]), strict=True))
    assert (row["mean"], row["best (a maximum)"]) == ("3.0", "12.0†")
