"""One CSV file of declared columns, written row by row, that can be cut back to where a checkpoint saw it."""

from __future__ import annotations

import csv
import io
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import AppendFile
from atari_dqn.telemetry.events import Value


class CsvTable:
    """Appends rows to a CSV file: UTF-8, Unix line ends, a header of exactly `columns`.

    Every row reaches the operating system in one write, so that a kill leaves whole rows. What a crash of the
    machine tears is mended by `truncate`. An older file is continued; `DamagedError` if its header differs.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        self._header = _line(columns)
        self._file = AppendFile(path)
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise

    def append(self, values: Mapping[str, Value]) -> None:
        """Write one row; `ValueError` names every column that is missing or was never declared."""
        if values.keys() != set(self._columns):
            raise ValueError(self._mismatch(values))
        self._file.append(_line(cell(values[name]) for name in self._columns))

    def offset(self) -> int:
        """Return the length of the file in bytes: where the next row begins."""
        return self._file.length()

    def sync(self) -> None:
        """Wait until the disk holds every row."""
        self._file.sync()

    def truncate(self, offset: int) -> None:
        """Cut what was written after `offset` bytes; `DamagedError` where no row can have ended."""
        self._check_offset(offset)
        self._file.truncate(offset)

    def restart(self) -> None:
        """Cut every row."""
        self._file.truncate(len(self._header))

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._file.close()

    def _begin(self) -> None:
        """Write the header of a new file, or of one whose header a crash tore; check that of an older one."""
        found = self._file.read(0, len(self._header))
        if found == self._header:
            return
        if not self._header.startswith(found):
            raise DamagedError(f"{self._file.path}: the header is {found!r}, expected {self._header!r}")
        self._file.truncate(0)
        self._file.append(self._header)

    def _check_offset(self, offset: int) -> None:
        length = self.offset()
        if offset > length:
            raise DamagedError(
                f"{self._file.path}: has {length} bytes, its checkpoint counted {offset}; rows are lost"
            )
        if offset < len(self._header) or self._file.read(offset - 1, 1) != b"\n":
            raise DamagedError(
                f"{self._file.path}: no row ends at byte {offset}, where its checkpoint says one does"
            )

    def _mismatch(self, values: Mapping[str, Value]) -> str:
        missing = [name for name in self._columns if name not in values]
        undeclared = [name for name in values if name not in self._columns]
        parts = [("missing", missing), ("undeclared", undeclared)]
        told = "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)
        return f"{self._file.path.name}: a row must hold exactly the declared columns ({told})"


def cell(value: object) -> str:
    """Return a value as a cell's text: floats in their shortest exact form, NaN as nothing."""
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return "" if math.isnan(value) else repr(float(value))
    raise TypeError(f"a cell holds a number or a word, got {type(value).__name__}")


def _line(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
