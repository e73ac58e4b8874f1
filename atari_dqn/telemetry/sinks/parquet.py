"""Parquet: the run's tables in columns and types, for analysis with other tools."""

from __future__ import annotations

import io

import polars as pl

from atari_dqn.files.atomic import write_atomically
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.events import Event, Notice
from atari_dqn.telemetry.sinks.target import Target

FOLDER = "parquet"
_WORDS = {"word", "hash"}
"""Units of the columns that are text."""


class ParquetSink:
    """Writes `parquet/TABLE.parquet` from the CSV tables, anew at each checkpoint and at the end.

    From the tables rather than from rows: so they agree to the last digit, after a resume too.
    """

    def __init__(self, target: Target) -> None:
        self._directory = target.directory
        (self._directory / FOLDER).mkdir(exist_ok=True)

    def handle(self, event: Event) -> None:
        """Write the tables once a checkpoint is saved."""
        if isinstance(event, Notice) and event.kind == "checkpoint":
            self._export()

    def close(self) -> None:
        """Write the tables as they are now."""
        self._export()

    def _export(self) -> None:
        for name in TABLES:
            data = (self._directory / f"{name}.csv").read_bytes()
            whole = data[: data.rindex(b"\n") + 1]
            buffer = io.BytesIO()
            typed(pl.read_csv(whole, infer_schema_length=None), name).write_parquet(buffer)
            write_atomically(self._directory / FOLDER / f"{name}.parquet", buffer.getvalue())


def typed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return a table whose empty columns have their type too: text where the unit says so, else numbers."""
    wanted = {
        column.name: pl.String if column.unit in _WORDS else pl.Float64
        for column in TABLES[name]
        if (table.schema[column.name] == pl.String) != (column.unit in _WORDS)
    }
    return table.cast(wanted)  # type: ignore[arg-type]
