"""Text stays text in Parquet, whatever it looks like."""

from contextlib import closing

import polars as pl

from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.events import Notice, Row
from atari_dqn.telemetry.sinks.parquet import ParquetSink
from atari_dqn.telemetry.writers import TableSink


def test_fingerprint_that_looks_like_a_number_stays_text(target) -> None:
    made = target()
    values = {column.name: 1.0 for column in TABLES["eval_log"]}
    with closing(TableSink(made.directory)) as tables:
        tables.handle(
            Row(table="eval_log", values=values | {"protocol": "1234e5678901", "eval_type": "full"})
        )
    ParquetSink(made).close()
    written = pl.read_parquet(made.directory / "parquet/eval_log.parquet")
    assert written["protocol"].to_list() == ["1234e5678901"]


def test_tables_are_written_at_a_checkpoint(target) -> None:
    made = target()
    values = {column.name: 1.0 for column in TABLES["train_log"]}
    with closing(TableSink(made.directory)) as tables:
        sink = ParquetSink(made)
        tables.handle(Row(table="train_log", values=values))
        sink.handle(Notice(kind="checkpoint", step=1, env_frames=4, message="saved"))
    assert pl.read_parquet(made.directory / "parquet/train_log.parquet").height == 1
