import math
from dataclasses import replace

import pytest

from atari_dqn.telemetry.events import GateChanged, GateState, Notice, Row
from atari_dqn.telemetry.sinks.scalars import distributions, gate_scalars, row_scalars


def test_a_row_is_its_finite_numbers_under_its_tables_name() -> None:
    row = Row(
        table="train_log",
        values={"step": 3, "env_frames": 12, "episode_return": 2.5, "end_reason": "game_over", "epsilon": 1},
    )
    assert row_scalars(row) == {"train/episode_return": 2.5, "train/epsilon": 1.0}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_number_that_is_not_finite_is_no_scalar(value: float) -> None:
    assert row_scalars(Row(table="update_log", values={"loss": value})) == {}


def test_evaluations_are_distinguished_by_their_type() -> None:
    row = Row(table="eval_log", values={"eval_type": "full", "mean_return": 7.0, "protocol": "abc"})
    assert row_scalars(row) == {"eval/full/mean_return": 7.0}


@pytest.mark.parametrize(
    ("state", "level"), [("ok", 0.0), ("watching", 1.0), ("warned", 2.0), ("tripped", 3.0)]
)
def test_a_gate_is_a_level(state: GateState, level: float) -> None:
    change = GateChanged(
        gate="grad_norm", state=state, step=1, env_frames=4, message="", value=2.0, threshold=1.0
    )
    assert gate_scalars(change) == {"gate/grad_norm": level}


def test_an_evaluations_notice_holds_distributions() -> None:
    notice = Notice(kind="evaluation", step=1, env_frames=4, message="", data={"returns": [1.0, 3.0]})
    assert distributions(notice) == {"eval/returns": [1.0, 3.0]}
    assert distributions(replace(notice, kind="actors")) == {}
