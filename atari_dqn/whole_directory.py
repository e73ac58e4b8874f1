"""A directory that is made beside its place and renamed into it, and what is left of one whose maker died."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from atari_dqn.files import exists, fsync_directory


@contextmanager
def whole_directory(path: Path, *, holds: Collection[str]) -> Iterator[Path]:
    """Yield an empty directory that becomes `path` once the block has ended; nothing stays where it fails.

    What processes that were killed in such a block have left beside `path` is removed first: directories
    of that name that no living process has locked, and that hold nothing but what a block makes (`holds`).
    """
    made_parents = [parent for parent in path.parents if not exists(parent)]
    _remove_left_overs(path, holds)
    partial, lock = None, None
    try:
        with suppress(FileExistsError):  # of a file in a folder's place; the next line's error says that
            path.parent.mkdir(parents=True, exist_ok=True)
        partial, lock = _make_locked(path)
        for parent in made_parents:
            fsync_directory(parent.parent)
        yield partial
        fsync_directory(partial)
        partial.rename(path)
        fsync_directory(path.parent)
    except BaseException:
        _remove(partial, made_parents)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _make_locked(path: Path) -> tuple[Path, int]:
    """Return a new directory beside `path`, and the descriptor that holds it for this process."""
    while True:
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        partial.mkdir()
        lock = _lock(partial)
        # another process may have removed it before it was locked
        if lock is not None and exists(partial):
            return partial, lock
        if lock is not None:
            os.close(lock)


def _lock(directory: Path) -> int | None:
    """Return a descriptor that holds a directory; None where another process holds it, or it is gone."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_left_overs(path: Path, holds: Collection[str]) -> None:
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.partial")
    with suppress(OSError):  # whoever may not look there cannot make a directory there either
        for entry in list(path.parent.iterdir()):
            if name.fullmatch(entry.name) and (lock := _lock(entry)) is not None:
                if {left.name for left in entry.iterdir()} <= set(holds):
                    shutil.rmtree(entry, ignore_errors=True)
                os.close(lock)


def _remove(partial: Path | None, made_parents: list[Path]) -> None:
    """Remove what a failed start has made, and no folder that someone else has put something into."""
    if partial is not None:
        shutil.rmtree(partial, ignore_errors=True)
    for parent in made_parents:
        try:
            parent.rmdir()
        except OSError:
            return
