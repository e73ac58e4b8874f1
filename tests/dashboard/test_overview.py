"""The table of all runs."""

from pathlib import Path
from typing import Any

from broken_runs import make_run

from atari_dqn.dashboard.library import Library, RunEntry


def row_of(run: RunEntry) -> dict[str, Any]:
    from atari_dqn.dashboard.pages import overview  # here, because NiceGUI takes each worker a second

    return overview.row_of(run)


def test_a_score_that_a_cap_cut_is_marked(tmp_path: Path) -> None:
    make_run(tmp_path / "run", [-20.0], frame_caps=3)
    (run,) = Library(tmp_path).runs()
    assert row_of(run)["last score"] == "-20.0† (final, 30 episodes)"


def test_a_broken_run_has_a_row(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "spec.toml").write_text("no")
    (run,) = Library(tmp_path).runs()
    assert (row_of(run)["run"], row_of(run)["state"]) == ("run", "unreadable")


def test_run_without_a_score_is_sorted_below_every_score(tmp_path: Path) -> None:
    make_run(tmp_path / "scored", [-20.0])
    make_run(tmp_path / "new", [1.0])
    table = tmp_path / "new" / "eval_log.csv"
    table.write_text(table.read_text().splitlines()[0] + "\n")
    keys = {run.name: row_of(run)["last score as a number"] for run in Library(tmp_path).runs()}
    assert keys["new"] < keys["scored"]
