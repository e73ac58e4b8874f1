"""Columns of a run's CSV tables: only those asked for, and what is wrong with the file in words."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from atari_dqn.errors import DamagedError
from atari_dqn.files import reading

Columns = Mapping[str, type[pl.DataType]]

EVALUATIONS: Columns = {
    "env_frames": pl.Int64,
    "eval_type": pl.String,
    "episodes": pl.Int64,
    "mean_return": pl.Float64,
    "frame_caps": pl.Int64,
    "protocol": pl.String,
}
TRAINING_RETURNS: Columns = {"env_frames": pl.Int64, "rolling_return": pl.Float64}
TIMES: Columns = {"env_frames": pl.Int64, "elapsed_seconds": pl.Float64}


def read_columns(path: Path, columns: Columns) -> tuple[pl.DataFrame, bool]:
    """Return columns of a CSV table, and whether its last row was cut off in the middle and left out.

    `DamagedError` for a file or column that is missing, and for a cell that is not of its column's type.
    """
    if not path.is_file():
        raise DamagedError(f"{path}: is missing; expected the table that `dqn train` writes")
    with reading(path), path.open("rb") as file:
        header = file.readline()
        torn = header.endswith(b"\n") and not _ends_with_a_line(file)
    _require(path, header, columns)
    try:
        return _scan(path, torn=torn).select(_typed(columns)).collect(), torn
    except PolarsError as error:
        raise DamagedError(f"{path}: cannot be read as a table: {_first_line(error)}") from error


def _scan(path: Path, *, torn: bool) -> pl.LazyFrame:
    """Return a table of text; its types are set column by column, for only the wanted ones."""
    source: Path | io.BytesIO = path
    if torn:
        data = path.read_bytes()
        source = io.BytesIO(data[: data.rindex(b"\n") + 1])
    return pl.scan_csv(source, infer_schema=False)


def _typed(columns: Columns) -> list[pl.Expr]:
    """Return the columns in their types. An empty cell is null, which in a float column stands for NaN."""
    typed = (pl.col(name).cast(dtype) for name, dtype in columns.items())
    return [
        expr.fill_null(float("nan")) if dtype == pl.Float64 else expr
        for expr, dtype in zip(typed, columns.values(), strict=True)
    ]


def _require(path: Path, header: bytes, columns: Columns) -> None:
    found = header.decode(errors="replace").strip()
    missing = [name for name in columns if name not in found.split(",")]
    if missing:
        raise DamagedError(f"{path}: no column {', '.join(missing)}; the header is {found!r}")


def _ends_with_a_line(file: io.BufferedReader) -> bool:
    file.seek(-1, io.SEEK_END)
    return file.read(1) == b"\n"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
