"""How far a run has come, in lines, in the table of runs and as a share."""

from pathlib import Path

import pytest
from broken_runs import make_run
from rich.console import Console

from atari_dqn.run.archive.manifest import MANIFEST
from atari_dqn.run.tailing.shown_progress import shown_progress
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.view.run_state import status_text
from atari_dqn.view.summary import summary_table


def run_of(path: Path, *, total_frames: int, late_frames: int = 0, imported: bool = True) -> RunStatus:
    """Make a run evaluated at 15,000 and 30,000 frames, and remove its row of the last period."""
    overrides = [f"training.total_frames={total_frames}"]
    run = make_run(
        path, [3.0, 12.0], spec="catch_smoke.toml", period_frames=15_000, late_frames=late_frames,
        overrides=overrides,
    )  # fmt: skip
    table = run / "update_log.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    if imported:
        (run / MANIFEST).touch()
    status = RunStatus(run)
    status.refresh()
    return status


def frames_line(status: RunStatus) -> str:
    (line,) = [line for line in status_text("run", status).plain.splitlines() if line.startswith("frames")]
    return line.removeprefix("frames").partition(", 0 frames/s")[0].strip()


@pytest.mark.parametrize("imported", [False, True])
def test_a_run_is_as_far_as_its_last_evaluation(tmp_path: Path, imported: bool) -> None:
    status = run_of(tmp_path / "run", total_frames=40_000, imported=imported)
    assert frames_line(status) == "30,000 of 40,000 (75.0%)"


def test_an_import_that_was_trained_beyond_its_spec_says_both_numbers(tmp_path: Path) -> None:
    status = run_of(tmp_path / "run", total_frames=4_000)
    assert frames_line(status) == "30,000 (4,000 by its spec)"


def test_a_run_that_ends_after_its_budget_is_whole(tmp_path: Path) -> None:
    status = run_of(tmp_path / "run", total_frames=30_000, late_frames=24, imported=False)
    assert frames_line(status) == "30,024 of 30,000 (100.0%)"


def test_the_shown_budget_of_an_import_is_not_below_its_frames(tmp_path: Path) -> None:
    assert shown_progress(run_of(tmp_path / "run", total_frames=4_000)).shown_budget == 30_000


def test_a_finished_import_is_whole_in_the_table_of_runs(tmp_path: Path) -> None:
    status = run_of(tmp_path / "run", total_frames=30_000)
    console = Console(width=100)
    with console.capture() as captured:
        console.print(summary_table({status.run: status}, columns=100))
    (line,) = [line for line in captured.get().splitlines() if "imported" in line]
    assert "100%" in line.split()
