"""Check the description of replay rows in state.json against the replay of the spec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from atari_dqn.errors import DamagedError
from atari_dqn.files.documents import MOST_INT, Count, check_types
from atari_dqn.replay.rows import piece_rows
from atari_dqn.run.checkpoint.segments import Columns, SavedRows, file_of, from_plain


@dataclass(frozen=True)
class RowsLayout:
    """The columns of the replay rows, the capacity in rows, and the number of groups."""

    columns: Columns
    most_rows: int
    spans: int = 1
    """Number of groups of environments, each with rows of its own."""

    @property
    def envs(self) -> int:
        """Number of environments, that is of cells in a row."""
        return next(iter(self.columns.values()))[1][0]


_Shape = Annotated[list[Annotated[int, Meta(ge=1, le=MOST_INT)]], Meta(min_length=1)]


class _SegmentTypes(Struct, forbid_unknown_fields=True):
    file: str
    first: Count
    stop: Count
    digest: str
    sha256: str
    bytes: Count


class _RowsTypes(Struct, forbid_unknown_fields=True):
    first: Count
    stop: Count
    columns: Annotated[dict[str, tuple[str, _Shape]], Meta(min_length=1)]
    segments: list[_SegmentTypes]
    spans: Annotated[list[tuple[Count, Count]], Meta(min_length=2)] | UnsetType = UNSET
    """The rows of each group of environments, where there are several."""


def described_rows(path: Path, key: str, plain: Any, layout: RowsLayout | None) -> SavedRows:
    """Return the rows of a checkpoint that its file `path` describes under `key`.

    Raise `DamagedError` with both if the description does not fit the layout; with None any layout is
    accepted.
    """
    check_types(path, plain, _RowsTypes, key=key)
    rows = from_plain(path.parent, plain)
    if layout is not None and len(rows.spans) != layout.spans:
        raise DamagedError(f"{path}: {key}.spans: found {len(rows.spans)}, expected {layout.spans}")
    if layout is not None and rows.columns != layout.columns:
        raise DamagedError(f"{path}: {key}.columns: are not those of the replay of this run")
    problem = _problem_of_columns(rows.columns) or _problem_of_rows(
        rows, layout.most_rows if layout else None
    )
    if problem:
        raise DamagedError(f"{path}: {key}: {problem}")
    return rows


def _problem_of_columns(columns: Columns) -> str | None:
    envs = {shape[:1] for _, shape in columns.values()}
    try:
        fit = all(np.dtype(dtype).kind in "biuf" and min(shape) > 0 for dtype, shape in columns.values())
    except (TypeError, ValueError):
        fit = False
    return None if fit and len(envs) == 1 else "expected numeric columns with the same number of environments"


def _problem_of_rows(rows: SavedRows, most_rows: int | None) -> str | None:
    counts = [stop - first for first, stop in rows.spans]
    most = sum(counts) if most_rows is None else most_rows
    if min(counts) < 0 or sum(counts) > most:
        return f"found rows {rows.first} to {rows.stop}, expected up to {most} of them"
    size = piece_rows(rows.envs)
    for segment in rows.segments:
        if segment.file != file_of(segment.first, segment.stop):
            return f"found the file {segment.file[:60]!r}, expected {file_of(segment.first, segment.stop)!r}"
        end_of_piece = (segment.first // size + 1) * size
        if not segment.first < segment.stop <= end_of_piece:
            return f"{segment.file} does not lie within one piece, which ends before row {end_of_piece}"
        if most_rows is not None and segment.stop - segment.first > most_rows:
            return f"{segment.file} holds more rows than this run's replay, {most_rows}"
    return None
