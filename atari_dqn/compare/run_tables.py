"""Read columns of the CSV tables of many runs.

Tables with the same header are read by one lazy query over all their files: one query for each file costs
more than reading it.
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
from atari_dqn.files.atomic import open_regular
from atari_dqn.files.failures import reading

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
TRAINING_GAMES: Columns = {"env_frames": pl.Int64, "episode_return": pl.Float64}
TIMES: Columns = {"env_frames": pl.Int64, "elapsed_seconds": pl.Float64}

_PATH = "path of the file"


@dataclass(frozen=True)
class _File:
    """A table on disk: its header, and whether its last row is incomplete."""

    path: Path
    header: bytes
    torn: bool

    @property
    def separate(self) -> bool:
        """Whether polars cannot read it with others: the last row is incomplete, or the path is not UTF-8."""
        return self.torn or not _is_utf8(self.path)


@dataclass(frozen=True)
class Table:
    """The columns of a file; an empty cell of a float column is NaN."""

    columns: pl.DataFrame
    torn: bool
    """Whether the last row is incomplete and left out."""


def read_tables(paths: Sequence[Path], columns: Columns) -> list[Table]:
    """Read columns of CSV tables, one table for each path.

    Raise `DamagedError` for a missing file or column, for a cell that is empty or of the wrong type, and for
    rows that are not sorted by frames.
    """
    files = [_inspect(path, columns) for path in paths]
    tables = {file.path: _read(file, columns) for file in files if file.separate}
    by_header: dict[bytes, list[_File]] = defaultdict(list)
    for file in files:
        if not file.separate:
            by_header[file.header].append(file)
    for same_header in by_header.values():
        tables |= _read_together(same_header, columns)
    for file in files:
        _check(file.path, tables[file.path])
    return [Table(tables[file.path], file.torn) for file in files]


def _inspect(path: Path, columns: Columns) -> _File:
    if not path.is_file():
        raise DamagedError(
            f"{path}: is missing or not a regular file; expected the table that `dqn train` writes"
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
    """Read files with the same header; on an error read them one by one, to name the damaged one."""
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
    """Read one table without an incomplete last row."""
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
    """Return expressions that cast the columns from text to their types."""
    return [
        pl.col(name).cast(dtype).fill_null(float("nan")) if dtype == pl.Float64 else pl.col(name).cast(dtype)
        for name, dtype in columns.items()
    ]


def _check(path: Path, table: pl.DataFrame) -> None:
    empty = [column.name for column in table if column.null_count()]
    if empty:
        raise DamagedError(f"{path}: cells of {', '.join(empty)} are empty; expected a value in each row")
    if not table["env_frames"].is_sorted():
        raise DamagedError(f"{path}: rows are not sorted by env_frames")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
