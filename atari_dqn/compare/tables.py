"""Columns of runs' CSV tables: only those asked for, and what is wrong with a file in words.

Tables of one header are read by one lazy query over all their files: a query each costs more than reading.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import open_regular, reading

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

_PATH = "path of the file"


@dataclass(frozen=True)
class _File:
    """A table on disk: its first line, and whether its last was cut off in the middle."""

    path: Path
    header: bytes
    torn: bool

    @property
    def alone(self) -> bool:
        """Whether it is read by itself: it was cut off, or its path is not UTF-8, which polars refuses."""
        return self.torn or not _is_utf8(self.path)


@dataclass(frozen=True)
class Table:
    """Columns of a file's rows; an empty cell of a float column is NaN."""

    columns: pl.DataFrame
    torn: bool
    """Whether the last row was cut off in the middle, and is left out."""


def read_tables(paths: Sequence[Path], columns: Columns) -> list[Table]:
    """Return columns of CSV tables, one for each path.

    `DamagedError` for a file or column that is missing, for a cell that is empty or not of its column's type,
    and for rows that are not in the order of frames.
    """
    files = [_inspected(path, columns) for path in paths]
    tables = {file.path: _read(file, columns) for file in files if file.alone}
    by_header: dict[bytes, list[_File]] = defaultdict(list)
    for file in files:
        if not file.alone:
            by_header[file.header].append(file)
    for alike in by_header.values():
        tables |= _read_together(alike, columns)
    for file in files:
        _check(file.path, tables[file.path])
    return [Table(tables[file.path], file.torn) for file in files]


def _inspected(path: Path, columns: Columns) -> _File:
    if not path.is_file():
        raise DamagedError(
            f"{path}: is missing, or no regular file; expected the table that `dqn train` writes"
        )
    with reading(path), path.open("rb") as file:
        header = file.readline()
        torn = header.endswith(b"\n") and not _ends_with_a_line(file)
    found = header.decode(errors="replace").strip()
    missing = [name for name in columns if name not in found.split(",")]
    if missing:
        raise DamagedError(f"{path}: no column {', '.join(missing)}; the header is {found!r}")
    return _File(path, header, torn)


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _ends_with_a_line(file: io.BufferedReader) -> bool:
    file.seek(-1, io.SEEK_END)
    return file.read(1) == b"\n"


def _read_together(files: Sequence[_File], columns: Columns) -> dict[Path, pl.DataFrame]:
    """Return the tables of whole files with one header. A fault is looked for file by file, to name it."""
    rows = pl.scan_csv(
        [file.path for file in files], infer_schema=False, include_file_paths=_PATH, glob=False
    )
    try:
        found = (
            rows.select(_PATH, *_typed(columns))
            .collect()
            .partition_by(_PATH, as_dict=True, include_key=False)
        )
    except PolarsError:
        return {file.path: _read(file, columns) for file in files}
    nothing = pl.DataFrame(schema=dict(columns))
    return {file.path: found.get((str(file.path),), nothing) for file in files}


def _read(file: _File, columns: Columns) -> pl.DataFrame:
    """Return one table, without the row that was cut off."""
    with reading(file.path), open_regular(file.path) as stream:
        data = stream.read()
    whole = data[: data.rindex(b"\n") + 1] if file.torn else data
    try:
        return (
            pl.scan_csv(io.BytesIO(whole), infer_schema=False, glob=False).select(*_typed(columns)).collect()
        )
    except PolarsError as error:
        raise DamagedError(f"{file.path}: cannot be read as a table: {_first_line(error)}") from error


def _typed(columns: Columns) -> list[pl.Expr]:
    """Return the columns, read as text, in their types."""
    return [
        pl.col(name).cast(dtype).fill_null(float("nan")) if dtype == pl.Float64 else pl.col(name).cast(dtype)
        for name, dtype in columns.items()
    ]


def _check(path: Path, table: pl.DataFrame) -> None:
    empty = [column.name for column in table if column.null_count()]
    if empty:
        raise DamagedError(f"{path}: cells of {', '.join(empty)} are empty; expected a value in each row")
    if not table["env_frames"].is_sorted():
        raise DamagedError(f"{path}: rows are not in the order of env_frames")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
