"""Export the tables of a run as Parquet, with typed columns, for analysis with other tools."""

from __future__ import annotations

import io

import polars as pl

from atari_dqn.files.atomic import write_atomically
from atari_dqn.telemetry.columns import FORMER_NAMES, TABLES
from atari_dqn.telemetry.events import Event, Notice
from atari_dqn.telemetry.sinks.target import Target

FOLDER = "parquet"


class ParquetSink:
    """Writes `parquet/TABLE.parquet` from the CSV tables, at each checkpoint and at the end.

    It reads the tables instead of the events, so that Parquet and CSV agree to the last digit, also after a
    resume.
    """

    def __init__(self, target: Target) -> None:
        self._directory = target.directory
        (self._directory / FOLDER).mkdir(exist_ok=True)

    def handle(self, event: Event) -> None:
        """Write the tables when a checkpoint has been saved."""
        if isinstance(event, Notice) and event.kind == "checkpoint":
            self._export()

    def close(self) -> None:
        """Write the tables a last time."""
        self._export()

    def _export(self) -> None:
        for name in TABLES:
            data = (self._directory / f"{name}.csv").read_bytes()
            complete_rows = data[: data.rindex(b"\n") + 1]
            buffer = io.BytesIO()
            # a fingerprint such as 1234e5678901 is no number
            text = {column.name: pl.String for column in TABLES[name] if column.is_text}
            table = pl.read_csv(complete_rows, infer_schema_length=None, schema_overrides=text)
            typed(table, name).write_parquet(buffer)
            write_atomically(self._directory / FOLDER / f"{name}.parquet", buffer.getvalue())


def typed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Cast the empty columns of a table to text or to float, as they are declared.

    Columns with names of earlier versions get their current names.
    """
    table = table.rename({former: name for former, name in FORMER_NAMES.items() if former in table.columns})
    dtypes = {
        column.name: pl.String if column.is_text else pl.Float64
        for column in TABLES[name]
        if (table.schema[column.name] == pl.String) != column.is_text
    }
    return table.cast(dtypes)  # type: ignore[arg-type]
