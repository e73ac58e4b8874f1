"""Columns of a run's tables as arrays, smoothed and thinned for a screen, from damaged files too."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PanicException, PolarsError

from atari_dqn.dashboard.library import RunEntry
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import read_regular
from atari_dqn.formatting import size

Values = NDArray[np.float64]
Axis = Literal["frames", "steps", "hours"]
MAX_POINTS = 600
"""Largest number of points of a line; a screen has no pixels for more."""
_SECONDS_PER_HOUR = 3600
_MOST_BYTES = 2**28
MOST_CACHED_BYTES = 2**28
_EMPTY = np.empty(0)


def series(run: RunEntry, table: str, column: str, axis: Axis = "frames") -> tuple[Values, Values]:
    """Read an axis and a column of a table, without entries that are not numbers. → f64[T], f64[T]."""
    values = columns(run.path / f"{table}.csv", ("step", "env_frames", column))
    if axis == "hours":
        times = columns(run.path / "throughput_log.csv", ("step", "elapsed_seconds"))
        x = _interpolated(values["step"], times["step"], times["elapsed_seconds"] / _SECONDS_PER_HOUR)
    else:
        x = values["env_frames" if axis == "frames" else "step"]
    kept = np.isfinite(x) & np.isfinite(values[column])
    return x[kept], values[column][kept]


def columns(path: Path, names: tuple[str, ...]) -> dict[str, Values]:
    """Read columns of a table as numbers; entries that are not numbers, and absent columns, are NaN.

    `UserError` if the table is too large to be drawn.
    """
    table = _tables.get(path)
    return {
        name: table.get_column(name).cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
        if name in table.columns
        else np.full(len(table), np.nan)
        for name in names
    }


def smoothed(y: Values, window: int) -> Values:
    """Compute the mean over the last `window` values at each, fewer at the start. f64[T] → f64[T]."""
    if window <= 1 or not len(y):
        return y
    sums = np.concatenate([[0.0], np.cumsum(y)])
    ends = np.arange(1, len(y) + 1)
    begins = np.maximum(0, ends - window)
    return np.asarray((sums[ends] - sums[begins]) / (ends - begins))


def thinned(x: Values, y: Values, *, points: int = MAX_POINTS) -> tuple[Values, Values]:
    """Select at most `points` of a line: the minimum and maximum of each section, which keeps all peaks."""
    if len(x) <= points:
        return x, y
    edges = np.linspace(0, len(x), points // 2 + 1).astype(int)
    kept = [
        index
        for begin, end in pairwise(edges)
        for index in sorted({begin + int(np.argmin(y[begin:end])), begin + int(np.argmax(y[begin:end]))})
    ]
    return x[kept], y[kept]


def band(
    lines: list[tuple[Values, Values]], *, points: int = MAX_POINTS
) -> tuple[Values, Values, Values, Values]:
    """Compute x, mean, minimum and maximum over seeds, where all of them have values."""
    begin, end = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    if end < begin:
        return _EMPTY, _EMPTY, _EMPTY, _EMPTY
    x = np.linspace(begin, end, min(points, max(len(line[0]) for line in lines)))
    stacked = np.stack([np.interp(x, *line) for line in lines])
    return x, stacked.mean(axis=0), stacked.min(axis=0), stacked.max(axis=0)


def _interpolated(at: Values, x: Values, y: Values) -> Values:
    return np.interp(at, x, y) if len(x) else np.full(len(at), np.nan)


def _stamp(path: Path) -> tuple[int, int]:
    """Read modification time and size, which change with the contents."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


class _Tables:
    """The table that was used last, and of the others the latest within a limit of bytes in all."""

    def __init__(self) -> None:
        self._tables: dict[Path, tuple[tuple[int, int], pl.DataFrame]] = {}

    def get(self, path: Path) -> pl.DataFrame:
        """Return a table, read again if the file has changed."""
        stamp = _stamp(path)
        known = self._tables.pop(path, None)
        table = known[1] if known is not None and known[0] == stamp else _read(path)
        self._tables[path] = stamp, table  # at the end: dicts keep the order of insertion
        while len(self._tables) > 1 and self.bytes_held() > MOST_CACHED_BYTES:
            del self._tables[next(iter(self._tables))]
        return table

    def bytes_held(self) -> int:
        """Compute the memory of all tables."""
        return sum(int(table.estimated_size()) for _, table in self._tables.values())


_tables = _Tables()


def _read(path: Path) -> pl.DataFrame:
    """Read the complete lines of a table as text; an empty table if there are none."""
    if _stamp(path)[1] > _MOST_BYTES:
        raise UserError(f"{path.name} is larger than {size(_MOST_BYTES)}; its curves are not drawn")
    try:
        data = read_regular(path, most_bytes=_MOST_BYTES)
        whole = data[: data.rindex(b"\n") + 1]
        return pl.read_csv(whole, infer_schema=False, truncate_ragged_lines=True)
    except (OSError, ValueError, PolarsError, PanicException):
        return pl.DataFrame()
