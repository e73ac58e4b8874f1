"""Names of new files: refuse unsuitable ones, and create files whose names no other process may take."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import fsync_directory, write_durably
from atari_dqn.files.failures import writing

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
"""Errors if a hard link cannot be made."""


def refuse_leading_hyphen(path: Path, *, where: str) -> None:
    """Raise `UserError` if commands, such as those that resume a run, would take a path for an option.

    `where`: the option or argument that names the path.
    """
    if str(path).startswith("-"):
        raise UserError(
            f"{where}: found {str(path)!r}, which other commands would take for an option; "
            'choose a name that does not begin with "-"'
        )


def place_new(partial: Path, path: Path) -> bool:
    """Give a complete file the name `path` unless something has it; return False if something has.

    `partial`: a temporary name in the same folder, which only this process uses. It may remain as a second
    link, for the caller to remove. Raise `OSError` if the folder cannot be changed.
    """
    try:
        os.link(partial, path)
    except FileExistsError:
        # with two links ours was made: a network file system reports a conflict if its first answer was lost
        return partial.stat().st_nlink == 2
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _replace_empty(partial, path)
    return True


def _replace_empty(partial: Path, path: Path) -> bool:
    """Place a file without hard links: an empty file takes the name and is replaced at once."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return False
    try:
        partial.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return True


def write_new(path: Path, data: bytes) -> bool:
    """Write `data` to `path` durably unless something has that name; return False if something has.

    The file appears when it is complete; on a file system without hard links an empty one comes first.
    `UserError` if it cannot be written.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with writing(path):
        try:
            write_durably(partial, data)
            is_placed = place_new(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        fsync_directory(path.parent)
    return is_placed


def write_numbered(path: Path, data: bytes, *, companion: str | None = None) -> Path:
    """Write `data` to the first of `path`, path_2, path_3, … whose name is free, and return it.

    `companion`: the suffix of another file, whose name must be free too. `UserError` as in `write_new`.
    """
    for name in _numbered(path):
        needed = [name] if companion is None else [name, name.with_suffix(companion)]
        if not any(os.path.lexists(each) for each in needed) and write_new(name, data):
            return name
    raise AssertionError("the numbers do not end")


def unused(path: Path) -> Path:
    """Return the first of `path`, path_2, path_3, … that is free; another process may take it meanwhile."""
    return next(name for name in _numbered(path) if not os.path.lexists(name))


def _numbered(path: Path) -> Iterator[Path]:
    """Yield `path`, path_2, path_3 and so on."""
    yield path
    yield from (path.with_stem(f"{path.stem}_{number}") for number in count(2))
