import math
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from tiny import begun, digest_after, run, ticks_of, tiny_spec

from atari_dqn.telemetry.columns import column_names
from atari_dqn.train.replay_log import ReplayLog

SHORT = "training.total_frames=640"
PRIORITIZED = "toggles.prioritized=true"


@pytest.mark.fault("D11")
@pytest.mark.parametrize("overrides", [(), (PRIORITIZED,)])
def test_row_holds_exactly_the_declared_columns(overrides: tuple[str, ...]) -> None:
    with begun(tiny_spec(*overrides)) as training:
        log = ReplayLog(training, seed=1, period_steps=100)
        ticks_of(training, 120)
        (row,) = log.rows()
    assert tuple(row.values) == column_names("replay_log")
    assert all(math.isfinite(value) for value in row.values.values())


@pytest.mark.fault("D11")
def test_rows_come_at_the_multiples_of_their_period(tmp_path: Path) -> None:
    run(tmp_path / "run", SHORT, PRIORITIZED, "logging.replay_period_steps=30")
    rows = pl.read_csv(tmp_path / "run/replay_log.csv")
    assert rows["step"].to_list() == [30, 60, 90, 120, 150]
    assert rows["env_frames"].to_list() == [120, 240, 360, 480, 600]
    assert rows["beta"].to_list() == pytest.approx(
        [0.4 + 0.6 * (frames + 16) / 640 for frames in rows["env_frames"]]
    )


@cache
def undisturbed(*overrides: str) -> str:
    return digest_after(tiny_spec(SHORT, *overrides))


@pytest.mark.fault("D11")
@pytest.mark.parametrize("period", [7, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("overrides", [pytest.param((), marks=pytest.mark.slow), (PRIORITIZED,)])
def test_period_of_the_reports_changes_nothing_that_is_learned(
    tmp_path: Path, period: int, overrides: tuple[str, ...]
) -> None:
    digest = run(tmp_path / "run", SHORT, f"logging.replay_period_steps={period}", *overrides)["state_digest"]
    assert digest == undisturbed(*overrides)


@pytest.mark.slow
def test_report_of_a_step_does_not_depend_on_the_reports_before(tmp_path: Path) -> None:
    rows = []
    for period in (20, 60):
        run(tmp_path / str(period), SHORT, PRIORITIZED, f"logging.replay_period_steps={period}")
        rows.append(pl.read_csv(tmp_path / str(period) / "replay_log.csv").filter(pl.col("step") == 120))
    assert rows[0].equals(rows[1])


def test_loaded_log_repeats_no_row() -> None:
    with begun(tiny_spec()) as training:
        saved, loaded = (ReplayLog(training, seed=1, period_steps=100) for _ in range(2))
        ticks_of(training, 120)
        assert len(list(saved.rows())) == 1
        loaded.load_state_dict(saved.state_dict())
        assert list(loaded.rows()) == []
