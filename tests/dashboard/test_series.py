import os
from pathlib import Path

import numpy as np
import pytest
from polars.exceptions import PanicException

from atari_dqn.dashboard.library import RunEntry
from atari_dqn.dashboard.pages.curves import curves_figure
from atari_dqn.dashboard.series import _Tables, band, series, smoothed, thinned
from atari_dqn.errors import UserError


def run_with(folder: Path, text: str, times: str = "") -> RunEntry:
    (folder / "update_log.csv").write_text(text)
    (folder / "throughput_log.csv").write_text(times)
    return RunEntry(name="run", path=folder)


def as_lists(values: tuple[np.ndarray, np.ndarray]) -> tuple[list[float], list[float]]:
    return values[0].tolist(), values[1].tolist()


def test_a_column_is_over_frames_or_steps(tmp_path: Path) -> None:
    run = run_with(tmp_path, "step,env_frames,loss\n10,40,0.5\n20,80,0.25\n")
    assert as_lists(series(run, "update_log", "loss")) == ([40.0, 80.0], [0.5, 0.25])
    assert as_lists(series(run, "update_log", "loss", "steps")) == ([10.0, 20.0], [0.5, 0.25])


def test_hours_come_from_the_table_of_times(tmp_path: Path) -> None:
    run = run_with(
        tmp_path, "step,env_frames,loss\n10,40,0.5\n20,80,0.25\n", "step,elapsed_seconds\n0,0\n20,7200\n"
    )
    assert as_lists(series(run, "update_log", "loss", "hours")) == ([1.0, 2.0], [0.5, 0.25])


def test_empty_torn_and_spoiled_entries_are_left_out(tmp_path: Path) -> None:
    run = run_with(tmp_path, "step,env_frames,loss\n10,40,\n20,80,x\n30,120,3\n40,160,4,5,6\n50,200,9")
    assert as_lists(series(run, "update_log", "loss")) == ([120.0, 160.0], [3.0, 4.0])


def test_a_table_that_polars_panics_at_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*arguments: object, **options: object) -> None:
        raise PanicException("a bug of polars")

    run = run_with(tmp_path, "step,env_frames,loss\n10,40,0.5\n")
    monkeypatch.setattr("polars.read_csv", panic)
    assert as_lists(series(run, "update_log", "loss")) == ([], [])


def test_a_table_that_is_missing_or_no_table_is_empty(tmp_path: Path) -> None:
    run = run_with(tmp_path, "\x00\x01")
    assert as_lists(series(run, "update_log", "loss")) == ([], [])
    assert as_lists(series(run, "train_log", "loss")) == ([], [])


def test_a_table_that_grows_is_read_again(tmp_path: Path) -> None:
    run = run_with(tmp_path, "step,env_frames,loss\n10,40,1\n")
    assert len(series(run, "update_log", "loss")[0]) == 1
    with (tmp_path / "update_log.csv").open("a") as file:
        file.write("20,80,2\n")
    assert len(series(run, "update_log", "loss")[0]) == 2


def test_a_table_that_changes_without_growing_is_read_again(tmp_path: Path) -> None:
    run = run_with(tmp_path, "step,env_frames,loss\n10,40,1\n")
    before = (tmp_path / "update_log.csv").stat().st_mtime_ns
    assert as_lists(series(run, "update_log", "loss")) == ([40.0], [1.0])
    run_with(tmp_path, "step,env_frames,loss\n10,40,2\n")
    os.utime(tmp_path / "update_log.csv", ns=(before + 1_000, before + 1_000))
    assert as_lists(series(run, "update_log", "loss")) == ([40.0], [2.0])


def test_of_a_table_that_grows_only_the_last_reading_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = _Tables()
    monkeypatch.setattr("atari_dqn.dashboard.series._tables", tables)
    run = run_with(tmp_path, "step,env_frames,loss\n10,40,1\n")
    series(run, "update_log", "loss")
    before = tables.bytes_held()
    for _ in range(5):
        with (tmp_path / "update_log.csv").open("a") as file:
            file.write("20,80,2\n")
        series(run, "update_log", "loss")
    assert tables.bytes_held() < 7 * before


def test_tables_beyond_the_limit_of_bytes_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = _Tables()
    monkeypatch.setattr("atari_dqn.dashboard.series._tables", tables)
    monkeypatch.setattr("atari_dqn.dashboard.series.MOST_CACHED_BYTES", 3_000)
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        rows = "".join(f"{step},{4 * step},1\n" for step in range(1_000, 1_100))
        run = run_with(tmp_path / str(number), f"step,env_frames,loss\n{rows}")
        assert len(series(run, "update_log", "loss")[0]) == 100
    assert 0 < tables.bytes_held() <= 3_000


def test_a_table_that_is_too_large_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atari_dqn.dashboard.series._MOST_BYTES", 20)
    run = run_with(tmp_path, "step,env_frames,loss\n10,40,1\n")
    with pytest.raises(UserError, match=r"update_log\.csv is larger than .*; its curves are not drawn"):
        series(run, "update_log", "loss")


def test_the_page_of_curves_names_a_table_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atari_dqn.dashboard.series._MOST_BYTES", 20)
    run = run_with(tmp_path, "step,env_frames,loss\n10,40,1\n")
    drawn, (reason,) = curves_figure([run], "update · loss", "frames", 1, in_bands=False)
    assert reason.startswith("run: update_log.csv is larger than ")
    assert drawn["layout"]["annotations"] == []


def test_the_page_of_curves_draws_the_axis_and_the_smoothing_that_are_selected(tmp_path: Path) -> None:
    run = run_with(
        tmp_path, "step,env_frames,loss\n10,40,4\n20,80,2\n", "step,elapsed_seconds\n0,0\n20,7200\n"
    )
    drawn, _ = curves_figure([run], "update · loss", "hours", 2, in_bands=False)
    (trace,) = drawn["data"]
    assert (trace["x"], trace["y"]) == ([1.0, 2.0], [4.0, 3.0])


def test_smoothing_is_the_mean_of_the_last_values() -> None:
    assert smoothed(np.array([1.0, 2.0, 3.0, 8.0]), 2).tolist() == [1.0, 1.5, 2.5, 5.5]


def test_thinning_keeps_every_peak() -> None:
    y = np.zeros(10_000)
    y[1234], y[5678] = 50.0, -50.0
    x, thin = thinned(np.arange(10_000.0), y, points=600)
    assert len(x) <= 600
    assert (x[thin == 50.0].tolist(), x[thin == -50.0].tolist()) == ([1234.0], [5678.0])


def test_a_band_is_over_what_all_seeds_have() -> None:
    first = (np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0]))
    second = (np.array([10.0, 20.0, 30.0]), np.array([0.0, 0.0, 0.0]))
    x, mean, low, high = band([first, second], points=2)
    assert (x.tolist(), mean.tolist()) == ([10.0, 20.0], [5.0, 10.0])
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [10.0, 20.0])
