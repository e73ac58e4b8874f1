"""Write files atomically, and read only regular files."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from atari_dqn.errors import UserError
from atari_dqn.files.failures import UNAVAILABLE, reading, writing

_BLOCK_BYTES = 2**20
_MOST_BYTES = 2**24  # far above any specification, record of provenance or summary
_NO_FSYNC = {errno.EINVAL, errno.EBADF, errno.ENOTSUP}
"""Errors of file systems that cannot flush a directory, such as some of FUSE and of network disks."""


def exists(path: Path) -> bool:
    """Return whether a file or directory exists; False also without permission, or for a name too long.

    `UserError` if the disk fails, because then it is not known whether the file exists.
    """
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    """Return whether a regular file exists; errors are those of `exists`."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except ValueError:  # the name is invalid
        return None
    except OSError as error:
        if error.errno not in UNAVAILABLE:
            return None
        with reading(path):
            raise


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; `OSError` for anything else, such as a pipe, which would block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError("is a directory" if stat.S_ISDIR(mode) else "is not a regular file")


def read_regular(path: Path, *, most_bytes: int = _MOST_BYTES) -> bytes:
    """Read a regular file of at most `most_bytes`; `OSError` for anything else."""
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"is larger than {most_bytes:,} bytes")
    return data


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` durably; after a crash or failure the previous file is still there.

    `UserError` if the file cannot be written.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    with writing(path):
        try:
            write_durably(partial, data)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        fsync_directory(path.parent)


def prepare_folder(path: Path, *, remedy: str | None = None) -> None:
    """Create a directory if it is missing, and check that files can be created in it; `UserError` if not."""
    probe = path / f".{secrets.token_hex(4)}.partial"
    with writing(path, remedy=remedy):
        path.mkdir(parents=True, exist_ok=True)
        try:
            probe.touch()
            probe.unlink()
        except OSError as error:
            error.filename = str(path)  # which the user knows
            raise


def write_json_atomically(path: Path, data: Any) -> None:
    """Write `data` as JSON atomically; `UserError` if the file cannot be written."""
    write_atomically(path, json_document(data))


def json_document(data: Any) -> bytes:
    """Serialize `data`, converted by `plain`, as an indented JSON file."""
    return (json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def plain(value: Any) -> Any:
    """Convert a value for JSON: NaN, infinities and unknown objects to text, NumPy scalars to numbers.

    In text, such as a path, "?" replaces bytes that are not UTF-8, which a JSON file cannot hold.
    """
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    return plain(value.item() if hasattr(value, "item") else str(value))


def write_durably(path: Path, data: bytes) -> None:
    """Write a file and wait until its data is on the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def fsync_file(path: Path) -> None:
    """Wait until the data of a file is on the disk, whichever process wrote it."""
    with open_regular(path) as file:
        os.fsync(file.fileno())


def fsync_directory(path: Path) -> None:
    """Wait until the entries of a directory are on the disk, on file systems that can flush a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FSYNC:
            raise
    finally:
        os.close(descriptor)


def sha256_of_file(path: Path) -> str:
    """Compute the SHA-256 of a regular file, in hexadecimal."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it has `readinto`


def sha256_of_beginning(path: Path, length: int) -> str:
    """Compute the SHA-256 of the first `length` bytes of a file, or of all of it if it is shorter."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while length and (block := file.read(min(length, _BLOCK_BYTES))):
            digest.update(block)
            length -= len(block)
    return digest.hexdigest()


class AppendFile:
    """A file that is only appended to. `append` writes all of its data or nothing.

    Writes are not buffered, so that a killed process loses nothing. `UserError` if the file cannot be
    written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            self._file = path.open("ab+", buffering=0)

    def lock(self) -> bool:
        """Lock the file for this process while it is open; return False if another process has locked it."""
        try:
            with writing(self.path):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except UserError as error:
            if isinstance(error.__cause__, BlockingIOError):
                return False
            raise
        return True

    def append(self, data: bytes) -> None:
        """Append `data`; if the disk fills up during the write, the file is restored to what it was."""
        start = self.length()
        with writing(self.path):
            try:
                rest = memoryview(data)
                while rest:  # a write may be partial; the next one then raises the error
                    rest = rest[self._file.write(rest) :]
            except OSError:
                with suppress(OSError):  # a device cannot be truncated
                    self._file.truncate(start)
                raise

    def length(self) -> int:
        """Return the file's length in bytes."""
        with reading(self.path):
            return self._file.seek(0, os.SEEK_END)

    def read(self, start: int, length: int) -> bytes:
        """Read up to `length` bytes from offset `start`."""
        with reading(self.path):
            self._file.seek(start)
            return self._file.read(length)

    def truncate(self, length: int) -> None:
        """Truncate the file to `length` bytes durably."""
        with writing(self.path):
            self._file.truncate(length)
        self.sync()

    def sync(self) -> None:
        """Wait until the data is on the disk."""
        with writing(self.path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()
