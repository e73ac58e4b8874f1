"""Create directories atomically: under a temporary name, which is changed when the directory is complete."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from atari_dqn.files.atomic import exists, fsync_directory


@contextmanager
def whole_directory(path: Path, *, holds: Collection[str]) -> Iterator[Path]:
    """Yield an empty directory that is renamed to `path` when the block ends, or removed if it fails.

    Before it is renamed, its folders are flushed to disk at every depth; the block must flush the files.
    First, the temporary directories of `path` that killed processes left are removed: those that no living
    process has locked, and whose entries all have names in `holds`, the names that such a block creates.
    """
    made_parents = [parent for parent in path.parents if not exists(parent)]
    _remove_leftovers(path, holds)
    partial, lock = None, None
    try:
        with suppress(FileExistsError):  # a parent is a file: `_make_locked` raises the error that names it
            path.parent.mkdir(parents=True, exist_ok=True)
        partial, lock = _make_locked(path)
        for parent in made_parents:
            fsync_directory(parent.parent)
        yield partial
        for folder, *_ in os.walk(partial):
            fsync_directory(Path(folder))
        partial.rename(path)
        fsync_directory(path.parent)
    except BaseException:
        _undo(partial, made_parents)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _make_locked(path: Path) -> tuple[Path, int]:
    """Create a temporary directory in the folder of `path`; return it and the descriptor that locks it."""
    while True:
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        partial.mkdir()
        try:
            lock = _lock(partial)
        except BaseException:
            partial.rmdir()
            raise
        # another process may have removed it before it was locked
        if lock is not None and exists(partial):
            return partial, lock
        if lock is not None:
            os.close(lock)


def _lock(directory: Path) -> int | None:
    """Lock a directory and return the descriptor; None if another process has locked it or it is missing."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_leftovers(path: Path, holds: Collection[str]) -> None:
    """Remove the temporary directories of `path` that killed processes left."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.partial")
    with suppress(OSError):  # creating the directory in the same folder reports the error
        for entry in list(path.parent.iterdir()):
            if name.fullmatch(entry.name) and (lock := _lock(entry)) is not None:
                if {content.name for content in entry.iterdir()} <= set(holds):
                    shutil.rmtree(entry, ignore_errors=True)
                os.close(lock)


def _undo(partial: Path | None, made_parents: list[Path]) -> None:
    """Remove the temporary directory, and the parents that were created unless they are in use since."""
    if partial is not None:
        shutil.rmtree(partial, ignore_errors=True)
    for parent in made_parents:
        try:
            parent.rmdir()
        except OSError:
            return
