"""Read the new lines of a file that another process appends to or truncates."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import open_regular

_MOST_BYTES = 2**30
"""The largest number of bytes read at once: three times the event log of a run of 23 billion frames with 256
actors."""
_MOST_LINE_BYTES = 2**20
_BLOCK_BYTES = 2**24
_MARK_BYTES = 100
"""The beginning of a line, in which the mark of a superseded line is searched."""
_COMPARED_BYTES = 64
"""The end of what was read is compared with the file, which may have grown again after a truncation."""


class GrowingFile:
    """Returns each complete line once; an incomplete line is kept until the rest has been written.

    With `last_bytes` a long file is read from near its end: its first line, then the complete lines in these
    bytes. Of the lines with `superseded` near their beginning, each reading has the last alone.
    """

    def __init__(self, path: Path, *, last_bytes: int | None = None, superseded: bytes | None = None) -> None:
        self.path = path
        self._last_bytes, self._superseded = last_bytes, superseded
        self.skipped = range(0)
        """The bytes that were not read, in front of the last ones."""
        self._offset = 0
        self._incomplete = self._last_read = b""

    def new_lines(self) -> list[str] | None:
        """Return the new lines; None if the file was truncated and must be read from its beginning.

        A missing file has none. Raise `DamagedError` if the file cannot be read or is too large.
        """
        try:
            with open_regular(self.path) as file:
                if not self._continues(file):
                    self._offset, self._incomplete, self._last_read = 0, b"", b""
                    return None
                length = file.seek(0, 2)
                if self._offset == 0 and self._last_bytes is not None and length > 2 * self._last_bytes:
                    self._skip(file, length - self._last_bytes)
                if length - self._offset > _MOST_BYTES:
                    raise OSError("is larger than any file of a run")
                whole = self._whole_lines(file)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DamagedError(f"{self.path}: {(error.strerror or str(error)).lower()}") from error
        return [line.decode(errors="replace") for line in whole]

    def _whole_lines(self, file: BinaryIO) -> list[bytes]:
        """Read to the end, in blocks, so that lines that are superseded take no memory."""
        lines: list[bytes] = []
        newest: int | None = None
        file.seek(self._offset)
        while data := file.read(_BLOCK_BYTES):
            self._offset += len(data)
            self._last_read = (self._last_read + data)[-_COMPARED_BYTES:]
            *whole, self._incomplete = (self._incomplete + data).split(b"\n")
            for line in whole:
                if self._superseded is not None and self._superseded in line[:_MARK_BYTES]:
                    if newest is not None:
                        del lines[newest]
                    newest = len(lines)
                lines.append(line)
        return lines

    def _continues(self, file: BinaryIO) -> bool:
        """Return whether the file still has, in front of the offset, what was read last."""
        if file.seek(0, 2) < self._offset:
            return False
        file.seek(self._offset - len(self._last_read))
        return file.read(len(self._last_read)) == self._last_read

    def _skip(self, file: BinaryIO, offset: int) -> None:
        """Read the first line, then skip to the first complete line after `offset`."""
        file.seek(0)
        self._incomplete = file.readline(_MOST_LINE_BYTES)
        file.seek(offset)
        file.readline(_MOST_LINE_BYTES)
        self._offset = file.tell()
        self.skipped = range(len(self._incomplete), self._offset)
