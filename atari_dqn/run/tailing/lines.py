"""The new lines of a file that another process appends to, or cuts back."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import open_regular

_MOST_BYTES = 2**28
"""Read at once: far more than a run of 200 million frames writes into one file."""
_MOST_LINE_BYTES = 2**20


class GrowingFile:
    """Hands out whole lines, each once. A line that is not yet at its end waits for the rest of it.

    With `last_bytes` a long file is begun near its end: its first line, then the whole lines in these bytes.
    """

    def __init__(self, path: Path, *, last_bytes: int | None = None) -> None:
        self.path = path
        self._last_bytes = last_bytes
        self._offset = 0
        self._begun = b""

    def new_lines(self) -> list[str] | None:
        """Return the lines since the last call; None where the file was cut back, and begins anew.

        A file that is not there has none. `DamagedError` for one that cannot be read, or is too large.
        """
        try:
            with open_regular(self.path) as file:
                length = file.seek(0, 2)
                if length < self._offset:
                    self._offset, self._begun = 0, b""
                    return None
                if self._offset == 0 and self._last_bytes is not None and length > 2 * self._last_bytes:
                    self._skip(file, length - self._last_bytes)
                if length - self._offset > _MOST_BYTES:
                    raise OSError("is larger than any file of a run")
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DamagedError(f"{self.path}: {(error.strerror or str(error)).lower()}") from error
        self._offset += len(data)
        *whole, self._begun = (self._begun + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def _skip(self, file: BinaryIO, offset: int) -> None:
        """Keep the first line, and go on with the first whole one after `offset`."""
        file.seek(0)
        self._begun = file.readline(_MOST_LINE_BYTES)
        file.seek(offset)
        file.readline(_MOST_LINE_BYTES)
        self._offset = file.tell()
