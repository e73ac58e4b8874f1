"""Folders that exist but may not be read: their files seem not to exist."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from atari_dqn.files.failures import reading


def is_closed(path: Path) -> bool:
    """Return whether a path is a folder whose files this user may not list or open."""
    return path.is_dir() and not os.access(path, os.R_OK | os.X_OK)


def refuse_closed(path: Path) -> None:
    """Raise `UserError` for a folder whose files this user may not list or open."""
    if is_closed(path):
        with reading(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
