"""Read and write segments: compressed files of replay rows, written once and never changed.

A later checkpoint hard-links the segments of the previous one, so that it only writes new rows. It is still
complete: it may be moved, and removing another checkpoint does not affect it. A file is one zstandard frame
of all columns, one after the other (docs/decisions/0016-replay-segments.md).
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import zstandard

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import open_regular, sha256_of_file
from atari_dqn.files.documents import reading_of_run
from atari_dqn.replay.rows import Rows, Tables, piece_rows
from atari_dqn.run.checkpoint.state_tree import piece_digest

FOLDER = "replay"
LEVEL = 3
"""Compression level of zstandard: as fast as level 1 with files a tenth smaller; level 5 is much slower."""
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
"""Errors of a file system without hard links, or without more of them for this file."""
_MOST_WINDOW_BYTES = 2**27
"""The largest window of a decompressor, more than `LEVEL` needs."""
_MOST_FRAME_HEADER_BYTES = 18
_MOST_PIECE_BYTES = 2**30
"""The largest size of a decompressed segment; a complete piece of 320 × 320 frames has 0.84 GB."""

Columns = dict[str, tuple[str, tuple[int, ...]]]
"""The dtype and the shape of one row, by column."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One file of rows [first, stop)."""

    file: str
    """Path relative to the checkpoint."""
    first: int
    stop: int
    digest: str
    """Digest of the rows; see `state_tree.piece_digest`."""
    sha256: str
    """SHA-256 of the file."""
    bytes: int

    def holds(self, first: int, stop: int) -> bool:
        """Return whether the file holds all of these rows."""
        return self.first <= first and stop <= self.stop


def columns_of(tables: Tables) -> Columns:
    """Return the dtypes and shapes of columns, which are needed to read a segment."""
    return {name: (array.dtype.str, array.shape[1:]) for name, array in tables.items()}


def write_segment(checkpoint: Path, tables: Tables, *, first: int, stop: int) -> Segment:
    """Write rows into a checkpoint being written; raise `OSError` if writing fails."""
    name = file_of(first, stop)
    data = _compressed(list(tables.values()))
    (checkpoint / name).write_bytes(data)
    return Segment(
        file=name,
        first=first,
        stop=stop,
        digest=piece_digest(tables),
        sha256=hashlib.sha256(data).hexdigest(),
        bytes=len(data),
    )


def share_segment(source: Path, checkpoint: Path, segment: Segment) -> bool:
    """Link a segment of the checkpoint `source`; return whether it exists and is undamaged."""
    target = checkpoint / segment.file
    try:
        _link(source / segment.file, target)
    except FileNotFoundError:
        return False
    if sha256_of_file(target) == segment.sha256:
        return True
    target.unlink()
    return False


class SavedRows:
    """Rows in the segments of a checkpoint, which are read on demand."""

    def __init__(
        self,
        checkpoint: Path,
        *,
        spans: Sequence[tuple[int, int]],
        columns: Columns,
        segments: Sequence[Segment],
    ) -> None:
        self.checkpoint, self._spans = checkpoint, list(spans)
        self._columns, self.segments = columns, tuple(segments)
        self._by_piece = {segment.first // piece_rows(self.envs): segment for segment in segments}

    @property
    def first(self) -> int:
        """Number of the oldest row."""
        return self._spans[0][0]

    @property
    def stop(self) -> int:
        """Number after the newest row."""
        return self._spans[-1][1]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """`first` and `stop` of each stretch of consecutive rows."""
        return self._spans

    @property
    def columns(self) -> Columns:
        """The columns of the rows."""
        return self._columns

    @property
    def envs(self) -> int:
        """Number of environments, that is of cells in a row."""
        return next(iter(self._columns.values()))[1][0]

    def read(self, first: int, stop: int) -> Tables:
        """Read the rows [first, stop) of one piece; raise `DamagedError` with the file that lacks them."""
        segment = self.segment_of(first, stop)
        if segment is None:
            raise DamagedError(f"{self.checkpoint / FOLDER}: no segment holds the rows {first} to {stop}")
        whole = self._read_segment(segment)
        rows = slice(first - segment.first, stop - segment.first)
        return {name: column[rows] for name, column in whole.items()}

    def segment_of(self, first: int, stop: int) -> Segment | None:
        """Return the segment that holds some rows of one piece, if there is one."""
        segment = self._by_piece.get(first // piece_rows(self.envs))
        return segment if segment is not None and segment.holds(first, stop) else None

    def _read_segment(self, segment: Segment) -> Tables:
        path = self.checkpoint / segment.file
        with reading_of_run(path), open_regular(path) as file:
            try:
                tables = _decompress(file, self._columns, count=segment.stop - segment.first)
            except (EOFError, zstandard.ZstdError) as error:
                raise DamagedError(f"{path}: cannot be read: {error}") from error
        return tables


def as_plain(rows: Rows, columns: Columns, segments: Iterable[Segment]) -> dict[str, Any]:
    """Return the description of rows for state.json."""
    spans = rows.spans
    return {
        "first": spans[0][0],
        "stop": spans[-1][1],
        **({"spans": [list(span) for span in spans]} if len(spans) > 1 else {}),
        "columns": {name: [dtype, list(shape)] for name, (dtype, shape) in columns.items()},
        "segments": [vars(segment) for segment in segments],
    }


def from_plain(checkpoint: Path, plain: Mapping[str, Any]) -> SavedRows:
    """Return the rows with a description by `as_plain`."""
    return SavedRows(
        checkpoint,
        spans=[(first, stop) for first, stop in plain.get("spans", [(plain["first"], plain["stop"])])],
        columns={name: (dtype, tuple(shape)) for name, (dtype, shape) in plain["columns"].items()},
        segments=[Segment(**segment) for segment in plain["segments"]],
    )


def file_of(first: int, stop: int) -> str:
    """Return the path of a segment's file below its checkpoint."""
    return f"{FOLDER}/{first:012d}-{stop:012d}.zst"


def _compressed(arrays: Sequence[np.ndarray]) -> bytes:
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    stream = compressor.compressobj(size=sum(array.nbytes for array in arrays))
    return b"".join([*(stream.compress(_bytes_of(array)) for array in arrays), stream.flush()])


def _decompress(file: BinaryIO, columns: Columns, *, count: int) -> Tables:
    """Decompress the columns of `count` rows; raise `EOFError` before allocating if the size differs."""
    row_bytes = sum(np.dtype(dtype).itemsize * math.prod(shape) for dtype, shape in columns.values())
    declared = zstandard.get_frame_parameters(file.read(_MOST_FRAME_HEADER_BYTES)).content_size
    if declared != count * row_bytes:
        raise EOFError(f"it declares {declared:,} bytes, {count:,} rows have {count * row_bytes:,}")
    if declared > _MOST_PIECE_BYTES:
        raise EOFError(f"it declares {declared:,} bytes, a piece has up to {_MOST_PIECE_BYTES:,}")
    file.seek(0)
    tables = {name: np.empty((count, *shape), dtype) for name, (dtype, shape) in columns.items()}
    with zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES).stream_reader(file) as reader:
        for table in tables.values():
            _fill(table, reader)
        if reader.read(1):
            raise EOFError("it holds more than its rows")
    return tables


def _fill(table: np.ndarray, reader: zstandard.ZstdDecompressionReader) -> None:
    place = _bytes_of(table)
    filled = 0
    while filled < len(place):
        count = reader.readinto(place[filled:])
        if not count:
            raise EOFError("it ends too early")
        filled += count


def _bytes_of(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)
