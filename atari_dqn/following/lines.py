"""The new lines of a file that another process appends to, or cuts back."""

from __future__ import annotations

from pathlib import Path


class GrowingFile:
    """Hands out whole lines, each once. A line that is not yet at its end waits for the rest of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._begun = b""

    def new_lines(self) -> list[str] | None:
        """Return the lines since the last call; None where the file was cut back, and begins anew.

        A file that is not there, or not readable at the moment, has none.
        """
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self._offset:
                    self._offset, self._begun = 0, b""
                    return None
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        self._offset += len(data)
        *whole, self._begun = (self._begun + data).split(b"\n")
        return [line.decode(errors="replace") for line in whole]
