"""Columns of a run's tables as arrays, smoothed and thinned for a screen, whatever state the file is in."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PanicException, PolarsError

from atari_dqn.dashboard.library import RunEntry
from atari_dqn.files.atomic import read_regular

Values = NDArray[np.float64]
Axis = Literal["frames", "steps", "hours"]
MAX_POINTS = 600
"""Of a line: more than a screen has pixels for it."""
_SECONDS_PER_HOUR = 3600
_MOST_BYTES = 2**28
_EMPTY = np.empty(0)


def series(run: RunEntry, table: str, column: str, axis: Axis = "frames") -> tuple[Values, Values]:
    """Return f64[T], f64[T]: a column over an axis. Cells that are no number are left out."""
    place = columns(run.path / f"{table}.csv", ("step", "env_frames", column))
    if axis == "hours":
        times = columns(run.path / "throughput_log.csv", ("step", "elapsed_seconds"))
        x = _interpolated(place["step"], times["step"], times["elapsed_seconds"] / _SECONDS_PER_HOUR)
    else:
        x = place["env_frames" if axis == "frames" else "step"]
    kept = np.isfinite(x) & np.isfinite(place[column])
    return x[kept], place[column][kept]


def columns(path: Path, names: tuple[str, ...]) -> dict[str, Values]:
    """Return columns of a table as numbers, NaN where a cell is none. A column that is absent is all NaN."""
    table = _table(path, *_stamp(path))
    return {
        name: table.get_column(name).cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
        if name in table.columns
        else np.full(len(table), np.nan)
        for name in names
    }


def smoothed(y: Values, window: int) -> Values:
    """Return the mean over the last `window` values at each; fewer at the beginning. f64[T] → f64[T]."""
    if window <= 1 or not len(y):
        return y
    sums = np.concatenate([[0.0], np.cumsum(y)])
    ends = np.arange(1, len(y) + 1)
    begins = np.maximum(0, ends - window)
    return np.asarray((sums[ends] - sums[begins]) / (ends - begins))


def thinned(x: Values, y: Values, *, points: int = MAX_POINTS) -> tuple[Values, Values]:
    """Return at most `points` of a line: of each stretch its lowest and highest, so that no peak is lost."""
    if len(x) <= points:
        return x, y
    edges = np.linspace(0, len(x), points // 2 + 1).astype(int)
    kept = [
        place
        for begin, end in pairwise(edges)
        for place in sorted({begin + int(np.argmin(y[begin:end])), begin + int(np.argmax(y[begin:end]))})
    ]
    return x[kept], y[kept]


def band(
    lines: list[tuple[Values, Values]], *, points: int = MAX_POINTS
) -> tuple[Values, Values, Values, Values]:
    """Return x, mean, lowest and highest over seeds, where all of them have values."""
    begin, end = max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines)
    if end < begin:
        return _EMPTY, _EMPTY, _EMPTY, _EMPTY
    x = np.linspace(begin, end, min(points, max(len(line[0]) for line in lines)))
    stacked = np.stack([np.interp(x, *line) for line in lines])
    return x, stacked.mean(axis=0), stacked.min(axis=0), stacked.max(axis=0)


def _interpolated(at: Values, x: Values, y: Values) -> Values:
    return np.interp(at, x, y) if len(x) else np.full(len(at), np.nan)


def _stamp(path: Path) -> tuple[int, int]:
    """Return what changes when a file does."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=512)
def _table(path: Path, _changed: int, _size: int) -> pl.DataFrame:
    """Return the whole lines of a table as text; nothing where there are none."""
    try:
        data = read_regular(path, most_bytes=_MOST_BYTES)
        whole = data[: data.rindex(b"\n") + 1]
        return pl.read_csv(whole, infer_schema=False, truncate_ragged_lines=True)
    except (OSError, ValueError, PolarsError, PanicException):
        return pl.DataFrame()
