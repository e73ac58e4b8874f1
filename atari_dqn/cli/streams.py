"""The program's own streams: what they cannot show, and readers that have left."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from atari_dqn.formatting import printable_lines

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_OUTPUT = "the output"


class _Output(io.FileIO):
    """The file of the standard output. Its errors name it, so that no other file's are taken for them.

    Where the reader of a pipe leaves a command that saves its work on SIGHUP, the command gets that signal,
    as if its terminal had been closed; what it writes from then on goes nowhere.
    """

    _reader_left = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as a file does."""
        if self._reader_left:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            if not isinstance(error, BrokenPipeError) or not _heeds_hangups():
                error.filename = _OUTPUT
                raise
        self._reader_left = True
        signal.raise_signal(signal.SIGHUP)
        return memoryview(data).nbytes


def _heeds_hangups() -> bool:
    return signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL


def prepare_streams() -> None:
    """Let errors of the output name it, and streams that know only ASCII show a question mark instead."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout is sys.__stdout__:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Output(sys.stdout.fileno(), "wb", closefd=False)),
            encoding=sys.stdout.encoding,
            line_buffering=sys.stdout.line_buffering,
            write_through=sys.stdout.write_through,
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def is_of_output(error: OSError) -> bool:
    """Return whether an error came from writing to the standard output."""
    return bool(error.filename == _OUTPUT)


def leave_output() -> None:
    """Let go of an output that cannot be written, or the last flush of the interpreter would fail too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def say(text: str) -> None:
    """Print a message on the standard error, made printable; a stream that is closed or full is no error."""
    with suppress(OSError):
        print(printable_lines(text), file=sys.stderr, flush=True)  # noqa: T201 - the program's own output
