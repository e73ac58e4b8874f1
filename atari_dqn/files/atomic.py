"""Files that are whole or absent: atomic writes, and the errors of a disk put into words."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO

from atari_dqn.errors import DiskFullError, UserError

_REMEDIES = {
    errno.ENOSPC: "free space on that disk, or choose another place",
    errno.EDQUOT: "free space within your quota, or choose another place",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f), or choose another place",
    errno.EACCES: "choose a place you may write to",
    errno.EPERM: "choose a place you may write to",
    errno.EROFS: "choose a place you may write to",
    errno.ENOTDIR: "part of this path is a file; choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
}

_BLOCK_BYTES = 2**20
_MOST_BYTES = 2**24  # far above any specification, record of provenance or summary
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BROKEN = {errno.EIO, errno.ENOMEM, errno.ESTALE}
"""Errors after which it is not known whether a file is there."""
_PARTIAL = re.compile(r"^\.(.+?)(\.[0-9a-f]{8})?\.partial$")
"""The name that a file or folder has until it is whole."""


def write_failure(path: Path, error: OSError, *, detail: str = "") -> UserError:
    """Return the error a user meets when a file cannot be written: the file, the cause, the remedy.

    The file is the one that the system's error names, or else `path`. A `DiskFullError` where there is no
    room. `detail` follows the cause.
    """
    remedy = _REMEDIES.get(error.errno or 0, "make it writable, or choose another place")
    kind = DiskFullError if error.errno in _NO_ROOM else UserError
    return kind(f"cannot write {_culprit(error, path)}: {_cause(error)}{detail}; {remedy}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an `OSError` of the block into the `UserError` that names the error's own file, or else `path`."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot read {_culprit(error, path)}: {_cause(error)}; make it readable, or name another"
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` of the block into the `UserError` that names the error's own file, or else `path`."""
    try:
        yield
    except OSError as error:
        raise write_failure(path, error) from error


def exists(path: Path) -> bool:
    """Return whether something is there; no, too, where one may not look or the name is too long.

    `UserError` where the disk does not answer: what cannot be read is not absent.
    """
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    """Return whether a regular file is there, as `exists` does."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except ValueError:  # a name that no file can have
        return None
    except OSError as error:
        if error.errno not in _BROKEN:
            return None
        with reading(path):
            raise


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read its bytes. `OSError` for anything else: a pipe would block for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError("is a directory" if stat.S_ISDIR(mode) else "is not a regular file")


def read_regular(path: Path, *, most_bytes: int = _MOST_BYTES) -> bytes:
    """Return the bytes of a regular file. `OSError` for anything else, and for a larger one."""
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"is larger than {most_bytes:,} bytes")
    return data


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path`, durable once this returns; a crash or failure leaves what was there before.

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


def prepare_folder(path: Path) -> None:
    """Make a folder where none is, and see that files can be written to it; `UserError` if not."""
    probe = path / f".{secrets.token_hex(4)}.partial"
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()


def unused(path: Path) -> Path:
    """Return `path`, or where something is there already, the first of path_2, path_3, … where nothing is."""
    names = (path.with_stem(f"{path.stem}_{number}") for number in count(2))
    return next(name for name in chain([path], names) if not os.path.lexists(name))


def write_json_atomically(path: Path, data: Any) -> None:
    """Write `data` as JSON, atomically. `UserError` if the file cannot be written."""
    write_atomically(path, json_document(data))


def json_document(data: Any) -> bytes:
    """Return `data` as an indented JSON file, whatever `plain` can make of it."""
    return (json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def plain(value: Any) -> Any:
    """Return a value JSON can hold: NaN and infinities become words, NumPy scalars numbers, the rest text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return plain(value.item()) if hasattr(value, "item") else str(value)


def write_durably(path: Path, data: bytes) -> None:
    """Write a file and wait until the disk holds it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def fsync_file(path: Path) -> None:
    """Wait until the disk holds every byte of a file, whoever wrote it."""
    with open_regular(path) as file:
        os.fsync(file.fileno())


def fsync_directory(path: Path) -> None:
    """Wait until the disk holds the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a regular file's bytes, in hexadecimal."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it has `readinto`


def sha256_of_beginning(path: Path, length: int) -> str:
    """Return the SHA-256 of a file's first `length` bytes; of all of it where it is shorter."""
    digest = hashlib.sha256()
    with open_regular(path) as file:
        while length and (block := file.read(min(length, _BLOCK_BYTES))):
            digest.update(block)
            length -= len(block)
    return digest.hexdigest()


class AppendFile:
    """A file that only grows at its end. What `append` is given is there whole or not at all.

    One write to the operating system each, unbuffered: a killed process loses nothing. `UserError` if the
    file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            self._file = path.open("ab+", buffering=0)

    def lock(self) -> bool:
        """Keep the file to this process while it is open; return whether no other process has it."""
        try:
            with writing(self.path):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except UserError as error:
            if isinstance(error.__cause__, BlockingIOError):
                return False
            raise
        return True

    def append(self, data: bytes) -> None:
        """Write `data` after what is there; a disk that fills up in the middle leaves the file as it was."""
        start = self.length()
        with writing(self.path):
            try:
                rest = memoryview(data)
                while rest:  # the system may take a part; what hinders the rest is its next error
                    rest = rest[self._file.write(rest) :]
            except OSError:
                with suppress(OSError):  # no file at all, such as a device, cannot be cut
                    self._file.truncate(start)
                raise

    def length(self) -> int:
        """Return the file's length in bytes."""
        with reading(self.path):
            return self._file.seek(0, os.SEEK_END)

    def read(self, start: int, length: int) -> bytes:
        """Return up to `length` bytes from `start`."""
        with reading(self.path):
            self._file.seek(start)
            return self._file.read(length)

    def truncate(self, length: int) -> None:
        """Cut the file to `length` bytes, durably."""
        with writing(self.path):
            self._file.truncate(length)
        self.sync()

    def sync(self) -> None:
        """Wait until the disk holds every byte."""
        with writing(self.path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._file.close()


def _culprit(error: OSError, path: Path) -> Path:
    """Return the file that an error of the system is about, by the name it has once it is whole."""
    named = error.filename2 or error.filename
    if not isinstance(named, str):
        return path
    return Path(*(_PARTIAL.sub(r"\1", part) for part in Path(named).parts))


def _cause(error: OSError) -> str:
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
