from atari_dqn.telemetry.events import GateChanged, Notice, Row
from atari_dqn.telemetry.sinks.scalars import distributions, gate_scalars, row_scalars


def test_a_row_is_its_finite_numbers_under_its_tables_name() -> None:
    row = Row(
        table="train_log",
        values={"step": 3, "env_frames": 12, "episode_return": 2.5, "end_reason": "game_over", "epsilon": 1},
    )
    assert row_scalars(row) == {"train/episode_return": 2.5, "train/epsilon": 1.0}


def test_nan_is_no_scalar() -> None:
    assert row_scalars(Row(table="update_log", values={"loss": float("nan")})) == {}


def test_evaluations_are_distinguished_by_their_type() -> None:
    row = Row(table="eval_log", values={"eval_type": "full", "mean_return": 7.0, "protocol": "abc"})
    assert row_scalars(row) == {"eval/full/mean_return": 7.0}


def test_a_gate_is_a_level() -> None:
    change = GateChanged(
        gate="grad_norm", state="warned", step=1, env_frames=4, message="", value=2.0, threshold=1.0
    )
    assert gate_scalars(change) == {"gate/grad_norm": 2.0}


def test_an_evaluations_notice_holds_distributions() -> None:
    notice = Notice(kind="evaluation", step=1, env_frames=4, message="", data={"returns": [1.0, 3.0]})
    assert distributions(notice) == {"eval/returns": [1.0, 3.0]}
    assert distributions(Notice(kind="started", step=0, env_frames=0, message="")) == {}
