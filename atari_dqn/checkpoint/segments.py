"""Segments: pieces of the replay's rows on disk, compressed, written once and never changed.

A later checkpoint takes over the segments of the one before by hard links, so that it writes new rows alone,
and yet is whole by itself: it may be moved, and removing another takes nothing from it.

A file is one zstandard frame of all columns, one after the other (docs/decisions/0016-replay-segments.md).
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from atari_dqn.checkpoint.tree import piece_digest
from atari_dqn.errors import DamagedError
from atari_dqn.files import sha256_of_file
from atari_dqn.replay.rows import Rows, Tables, piece_rows

FOLDER = "replay"
LEVEL = 3
"""Of zstandard: docs/results/codec.json. As quick as level 1 and a tenth smaller; 5 takes far longer."""
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
"""A file system that has no hard links, or no more for this file."""

Columns = dict[str, tuple[str, tuple[int, ...]]]
"""Each column's dtype and the shape of one row."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One file of rows."""

    file: str
    """Path below its checkpoint."""
    first: int
    stop: int
    digest: str
    """Of the rows; see `tree.piece_digest`."""
    sha256: str
    """Of the file."""
    bytes: int

    def holds(self, first: int, stop: int) -> bool:
        """Return whether the file holds all of these rows."""
        return self.first <= first and stop <= self.stop


def columns_of(tables: Tables) -> Columns:
    """Return what must be known to read a segment again."""
    return {name: (array.dtype.str, array.shape[1:]) for name, array in tables.items()}


def write_segment(checkpoint: Path, tables: Tables, *, first: int, stop: int) -> Segment:
    """Write rows into a checkpoint that is being made. `OSError` if the disk refuses."""
    name = f"{FOLDER}/{first:012d}-{stop:012d}.zst"
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
    """Take over a segment of the checkpoint `source`; return whether it is there and undamaged."""
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
    """Rows in the segments of a checkpoint, read when they are asked for."""

    def __init__(
        self, checkpoint: Path, *, first: int, stop: int, columns: Columns, segments: Sequence[Segment]
    ) -> None:
        self.checkpoint, self._first, self._stop = checkpoint, first, stop
        self._columns = columns
        self._by_piece = {segment.first // piece_rows(self.lanes): segment for segment in segments}

    @property
    def first(self) -> int:
        """Number of the oldest row."""
        return self._first

    @property
    def stop(self) -> int:
        """Number after the newest row."""
        return self._stop

    @property
    def lanes(self) -> int:
        """Cells in a row."""
        return next(iter(self._columns.values()))[1][0]

    def read(self, first: int, stop: int) -> Tables:
        """Return some of the rows. `DamagedError` names the file that does not hold them."""
        segment = self.segment_of(first, stop)
        if segment is None:
            raise DamagedError(f"{self.checkpoint / FOLDER}: no segment holds the rows {first} to {stop}")
        whole = self._read_segment(segment)
        rows = slice(first - segment.first, stop - segment.first)
        return {name: column[rows] for name, column in whole.items()}

    def segment_of(self, first: int, stop: int) -> Segment | None:
        """Return the segment that holds some rows of one piece, if there is one."""
        segment = self._by_piece.get(first // piece_rows(self.lanes))
        return segment if segment is not None and segment.holds(first, stop) else None

    def _read_segment(self, segment: Segment) -> Tables:
        count = segment.stop - segment.first
        tables = {name: np.empty((count, *shape), dtype) for name, (dtype, shape) in self._columns.items()}
        path = self.checkpoint / segment.file
        try:
            _decompress(path, tables.values())
        except (OSError, EOFError, zstandard.ZstdError) as error:
            raise DamagedError(f"{path}: cannot be read: {error}") from error
        return tables


def as_plain(rows: Rows, columns: Columns, segments: Iterable[Segment]) -> dict[str, Any]:
    """Return what state.json holds in place of rows."""
    return {
        "first": rows.first,
        "stop": rows.stop,
        "columns": {name: [dtype, list(shape)] for name, (dtype, shape) in columns.items()},
        "segments": [vars(segment) for segment in segments],
    }


def from_plain(checkpoint: Path, plain: Mapping[str, Any]) -> SavedRows:
    """Return the rows that state.json tells of. `KeyError`, `TypeError` or `ValueError` if it does not."""
    return SavedRows(
        checkpoint,
        first=plain["first"],
        stop=plain["stop"],
        columns={name: (dtype, tuple(shape)) for name, (dtype, shape) in plain["columns"].items()},
        segments=[Segment(**segment) for segment in plain["segments"]],
    )


def _compressed(arrays: Sequence[np.ndarray]) -> bytes:
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    stream = compressor.compressobj(size=sum(array.nbytes for array in arrays))
    return b"".join([*(stream.compress(_bytes_of(array)) for array in arrays), stream.flush()])


def _decompress(path: Path, arrays: Iterable[np.ndarray]) -> None:
    """Fill the arrays with a file's columns. `EOFError` if it holds less or more."""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        for array in arrays:
            wanted = _bytes_of(array)
            filled = 0
            while filled < len(wanted):
                count = reader.readinto(wanted[filled:])
                if not count:
                    raise EOFError("it ends too early")
                filled += count
        if reader.read(1):
            raise EOFError("it holds more than its rows")


def _bytes_of(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)
