"""The program's own streams: what they cannot show, and readers that have left."""

from __future__ import annotations

import errno
import io
import os
import sys

_OF_A_STREAM = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What writing to a pipe, a terminal or a file that stands for one can meet."""


def show_what_can_be_shown() -> None:
    """Let a terminal that knows only ASCII show a question mark for each other character, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def leave_stdout(error: OSError) -> None:
    """End after output that nobody reads, which is no fault, or that cannot be written, which is one."""
    if error.filename is not None or error.errno not in _OF_A_STREAM:
        raise error
    # Or the last flush of the interpreter would fail too.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        sys.exit(0)
    print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)  # noqa: T201
    sys.exit(2)
