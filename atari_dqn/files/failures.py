"""Convert errors of the file system to errors for the user, with the file, the cause and the remedy."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atari_dqn.errors import DiskFullError, UnavailableError, UserError

UNAVAILABLE = {
    errno.EIO, errno.ESTALE, errno.EREMOTEIO, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN,
    errno.EHOSTUNREACH, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE,
}  # fmt: skip
"""Errors of a disk or a machine: the same may succeed later, and it is not known whether a file exists."""
_OPEN_FILES = "raise the limit on open files (ulimit -n), or end other programs"
_LIMITS = dict.fromkeys(UNAVAILABLE, "try again when that disk answers") | {
    errno.EMFILE: _OPEN_FILES,
    errno.ENFILE: _OPEN_FILES,
    errno.ENOMEM: "end other programs",
    errno.EAGAIN: "end other programs",
}
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
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PARTIAL = re.compile(r"^\.(.+?)(\.[0-9a-f]{8})?\.partial$")
"""The temporary name of a file or directory until it is complete."""


def write_failure(path: Path, error: OSError, *, detail: str = "", remedy: str | None = None) -> UserError:
    """Create the error for a file that cannot be written, with the file, the cause and the remedy.

    The file is the one that `error` names, otherwise `path`. It is a `DiskFullError` if there is no space, an
    `UnavailableError` if the disk or the machine fails, else a `UserError`. `detail` follows the cause in the
    message; `remedy` replaces that for the cause.
    """
    remedy = remedy or _REMEDIES.get(error.errno or 0, "make it writable, or choose another place")
    kind = DiskFullError if error.errno in _NO_ROOM else _kind(error)
    return kind(f"cannot write {_culprit(error, path)}: {_cause(error)}{detail}; {remedy}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert an `OSError` of the block to a `UserError`, which names the error's file or else `path`.

    It is an `UnavailableError` if the disk or the machine fails.
    """
    try:
        yield
    except OSError as error:
        remedy = _LIMITS.get(error.errno or 0, "make it readable, or name another")
        raise _kind(error)(f"cannot read {_culprit(error, path)}: {_cause(error)}; {remedy}") from error


@contextmanager
def writing(path: Path, *, remedy: str | None = None) -> Iterator[None]:
    """Convert an `OSError` of the block to the `UserError` of `write_failure`."""
    try:
        yield
    except OSError as error:
        raise write_failure(path, error, remedy=remedy) from error


def _kind(error: OSError) -> type[UserError]:
    return UnavailableError if error.errno in UNAVAILABLE else UserError


def _culprit(error: OSError, path: Path) -> Path:
    """Return the file that an `OSError` names, without the temporary name of an incomplete file."""
    named = error.filename2 or error.filename
    if not isinstance(named, str):
        return path
    return Path(*(_PARTIAL.sub(r"\1", part) for part in Path(named).parts))


def _cause(error: OSError) -> str:
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
