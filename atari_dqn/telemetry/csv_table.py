"""Write one CSV file of declared columns row by row, and truncate it to the length at a checkpoint."""

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

    Every row reaches the operating system in one write, so that a killed process leaves complete rows. An
    incomplete row after a crash of the machine is removed by `truncate`. An existing file is continued under
    its header, which may have the names `former`; raise `DamagedError` if it has any other header.
    """

    def __init__(self, path: Path, columns: Sequence[str], *, former: Sequence[str] = ()) -> None:
        self._columns = tuple(columns)
        self._header = _line(columns)
        self._file = AppendFile(path)
        try:
            self._begin(_line(former or columns))
        except BaseException:
            self._file.close()
            raise

    def append(self, values: Mapping[str, Value]) -> None:
        """Write one row; raise `ValueError` with every column that is missing or undeclared."""
        if values.keys() != set(self._columns):
            raise ValueError(self._mismatch(values))
        self._file.append(_line(cell(values[name]) for name in self._columns))

    def offset(self) -> int:
        """Return the length of the file in bytes, at which the next row begins."""
        return self._file.length()

    def sync(self) -> None:
        """Flush every row to disk."""
        self._file.sync()

    def truncate(self, offset: int) -> None:
        """Truncate the file to `offset` bytes; raise `DamagedError` if no row ends there."""
        self._check_offset(offset)
        self._file.truncate(offset)

    def restart(self) -> None:
        """Remove every row."""
        self._file.truncate(len(self._header))

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()

    def _begin(self, former: bytes) -> None:
        """Check the header of an existing file; write it if the file is new or its header incomplete."""
        if self._file.read(0, len(former)) == former:
            self._header = former
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
                f"{self._file.path}: has {length} bytes, but {offset} at its checkpoint; rows are lost"
            )
        if offset < len(self._header) or self._file.read(offset - 1, 1) != b"\n":
            raise DamagedError(
                f"{self._file.path}: no row ends at byte {offset}, the length at its checkpoint"
            )

    def _mismatch(self, values: Mapping[str, Value]) -> str:
        missing = [name for name in self._columns if name not in values]
        undeclared = [name for name in values if name not in self._columns]
        parts = [("missing", missing), ("undeclared", undeclared)]
        faults = "; ".join(f"{word}: {', '.join(names)}" for word, names in parts if names)
        return f"{self._file.path.name}: a row must hold exactly the declared columns ({faults})"


def cell(value: object) -> str:
    """Format a value as a cell: floats in their shortest exact form, NaN as an empty cell."""
    if isinstance(value, str):
        return value
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return "" if math.isnan(value) else repr(float(value))
    raise TypeError(f"a cell must be a number or a str, got {type(value).__name__}")


def _line(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
