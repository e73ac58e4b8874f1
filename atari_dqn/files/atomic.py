"""Write files atomically, read only regular files, and convert errors of the file system to user errors."""

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
from pathlib import Path
from typing import Any, BinaryIO

from atari_dqn.errors import DiskFullError, UserError

_OPEN_FILES = "raise the limit on open files (ulimit -n), or end other programs"
_LIMITS = {errno.EMFILE: _OPEN_FILES, errno.ENFILE: _OPEN_FILES}
"""Remedies of errors that are no fault of the path; reading has them too."""
_REMEDIES = {
    **_LIMITS,
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
BROKEN = {errno.EIO, errno.ENOMEM, errno.ESTALE}
"""Errors after which it is not known whether a file exists."""
_NO_FSYNC = {errno.EINVAL, errno.EBADF, errno.ENOTSUP}
"""Errors of file systems that cannot flush a directory, such as some of FUSE and of network disks."""
_PARTIAL = re.compile(r"^\.(.+?)(\.[0-9a-f]{8})?\.partial$")
"""The temporary name of a file or directory until it is complete."""


def write_failure(path: Path, error: OSError, *, detail: str = "", remedy: str | None = None) -> UserError:
    """Create the error for a file that cannot be written, with the file, the cause and the remedy.

    The file is the one that `error` names, otherwise `path`. It is a `DiskFullError` if there is no space,
    else a `UserError`. `detail` follows the cause in the message; `remedy` replaces that for the cause.
    """
    remedy = remedy or _REMEDIES.get(error.errno or 0, "make it writable, or choose another place")
    kind = DiskFullError if error.errno in _NO_ROOM else UserError
    return kind(f"cannot write {_culprit(error, path)}: {_cause(error)}{detail}; {remedy}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert an `OSError` of the block to a `UserError`, which names the error's file or else `path`."""
    try:
        yield
    except OSError as error:
        remedy = _LIMITS.get(error.errno or 0, "make it readable, or name another")
        raise UserError(f"cannot read {_culprit(error, path)}: {_cause(error)}; {remedy}") from error


@contextmanager
def writing(path: Path, *, remedy: str | None = None) -> Iterator[None]:
    """Convert an `OSError` of the block to the `UserError` of `write_failure`."""
    try:
        yield
    except OSError as error:
        raise write_failure(path, error, remedy=remedy) from error


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
        if error.errno not in BROKEN:
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


def _culprit(error: OSError, path: Path) -> Path:
    """Return the file that an `OSError` names, without the temporary name of an incomplete file."""
    named = error.filename2 or error.filename
    if not isinstance(named, str):
        return path
    return Path(*(_PARTIAL.sub(r"\1", part) for part in Path(named).parts))


def _cause(error: OSError) -> str:
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
