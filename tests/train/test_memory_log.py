import math
from pathlib import Path

import polars as pl
import pytest
from tiny import MEMORY, begun, digest_after, run, ticks_of, tiny_spec

from atari_dqn.telemetry.columns import column_names
from atari_dqn.telemetry.events import Row
from atari_dqn.train.memory_log import memory_logs

SHORT = (*MEMORY, "training.total_frames=640")
ROW = Row(table="replay_log", values={"step": 1, "env_frames": 4})
OF_ALL = {"step", "env_frames", "state_norm", "early_td_error", "late_td_error"}


@pytest.mark.parametrize(
    ("stored", "filled"),
    [("true", OF_ALL | {"first_delta_q", "last_delta_q"}), ("false", OF_ALL)],
)
def test_row_has_every_column_and_fills_staleness_where_states_are_stored(
    stored: str, filled: set[str]
) -> None:
    spec = tiny_spec(*SHORT, f"replay.stored_state={stored}")
    with begun(spec) as training:
        ticks_of(training, 120)
        (log,) = memory_logs(training, spec)
        row = log.row(ROW)
    assert tuple(row.values) == column_names("memory_log")
    assert {name for name, value in row.values.items() if math.isfinite(value)} == filled


def test_nothing_is_reported_while_nothing_can_be_sampled() -> None:
    spec = tiny_spec(*SHORT)
    with begun(spec) as training:
        (log,) = memory_logs(training, spec)
        row = log.row(ROW)
    assert {name for name, value in row.values.items() if math.isfinite(value)} == {"step", "env_frames"}


def test_agent_without_memory_has_no_such_report() -> None:
    spec = tiny_spec()
    with begun(spec) as training:
        assert memory_logs(training, spec) == ()


@pytest.mark.slow
def test_rows_come_with_those_of_the_replay_and_change_nothing_that_is_learned(tmp_path: Path) -> None:
    digest = run(tmp_path / "run", *SHORT, "logging.replay_period_steps=40")["state_digest"]
    rows = pl.read_csv(tmp_path / "run/memory_log.csv")
    assert rows["env_frames"].to_list() == [160, 320, 480, 640]
    assert digest == digest_after(tiny_spec(*SHORT))
