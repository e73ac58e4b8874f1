import math
from pathlib import Path

import polars as pl
import pytest
from tiny import begun, digest_after, run, ticks_of, tiny_spec

from atari_dqn.telemetry.columns import column_names
from atari_dqn.telemetry.events import Row
from atari_dqn.train.prediction_log import PredictionLog

SHORT = "training.total_frames=640"
FILLED = {
    "none": {"action_gap"},
    "c51": {"action_gap", "std_return", "lowest_atom_mass", "highest_atom_mass"},
    "qr_dqn": {"action_gap", "std_return", "crossed_share"},
    "iqn": {"action_gap", "std_return", "crossed_share"},
}


@pytest.mark.parametrize(("kind", "filled"), FILLED.items())
def test_row_has_every_column_and_fills_those_that_its_kind_of_prediction_has(
    kind: str, filled: set[str]
) -> None:
    with begun(tiny_spec(f"toggles.distribution={kind}")) as training:
        ticks_of(training, 120)
        row = PredictionLog(training, seed=1).row(
            Row(table="replay_log", values={"step": 1, "env_frames": 4})
        )
    assert tuple(row.values) == column_names("prediction_log")
    assert {name for name, value in row.values.items() if math.isfinite(value)} == {
        "step",
        "env_frames",
    } | filled


def test_rows_come_with_those_of_the_replay(tmp_path: Path) -> None:
    run(tmp_path / "run", SHORT, "logging.replay_period_steps=30", "toggles.distribution=c51")
    rows = pl.read_csv(tmp_path / "run/prediction_log.csv")
    assert rows["step"].to_list() == [30, 60, 90, 120, 150]
    assert rows["env_frames"].to_list() == [120, 240, 360, 480, 600]


def test_nothing_is_reported_while_nothing_can_be_sampled() -> None:
    with begun(tiny_spec()) as training:
        row = PredictionLog(training, seed=1).row(
            Row(table="replay_log", values={"step": 0, "env_frames": 0})
        )
    assert all(math.isnan(value) for name, value in row.values.items() if name not in ("step", "env_frames"))


@pytest.mark.parametrize("overrides", [("toggles.noisy=true", "toggles.distribution=c51")])
@pytest.mark.slow
def test_looking_changes_nothing_that_is_learned(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    digest = run(tmp_path / "run", SHORT, "logging.replay_period_steps=7", *overrides)["state_digest"]
    assert digest == digest_after(tiny_spec(SHORT, *overrides))
