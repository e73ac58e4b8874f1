"""Make a folder for files that are needed for a short time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from atari_dqn.errors import UserError


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end; raise `UserError` if none can be made."""
    try:
        folder = TemporaryDirectory(prefix=prefix)
    except OSError as error:
        raise UserError(
            f"cannot make a temporary folder: {error.strerror or error}; free space, or set TMPDIR to a "
            "folder with space"
        ) from error
    with folder as name:
        yield Path(name)
