"""The program `dqn`: its commands, its output streams, and its messages and exit codes for errors.

Exit codes: 0 done · 2 wrong input · 3 halted · 4 damaged files · 5 a process, a thread or memory
that the command needs is not there · 6 another process uses the run · 129/130/143 interrupted, after a
checkpoint.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn import __version__
from atari_dqn.cli import (
    bench,
    compare,
    dashboard,
    doctor,
    eval,  # noqa: A004 - the command's name
    export,
    import_archive,
    play,
    raise_on_interrupt,
    record,
    resume,
    spec,
    sweep,
    train,
    tune,
    verify,
    watch,
)
from atari_dqn.cli.command import SETTINGS, Command
from atari_dqn.cli.welcome import Program
from atari_dqn.errors import (
    DamagedError,
    HaltedError,
    InfrastructureError,
    InterruptedRunError,
    UnavailableError,
    UserError,
)
from atari_dqn.files.failures import UNAVAILABLE
from atari_dqn.formatting import printable_lines
from atari_dqn.view.wrapping import lines_at_words, terminal_columns

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

NAME = "dqn"
EXAMPLES = """\
dqn train pong_quick
dqn train --help"""
_COMPLETION = "_DQN_COMPLETE"
_INTERRUPTED = 130
_OUTPUT = "the output"
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
"""Errors of a machine or a limit that has been used up; they often name no file."""

app = typer.Typer(
    name=NAME, cls=Program, context_settings=SETTINGS, pretty_exceptions_enable=False, rich_markup_mode=None
)
COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "train": (train.train, train.EXAMPLES),
    "resume": (resume.resume, resume.EXAMPLES),
    "sweep": (sweep.sweep, sweep.EXAMPLES),
    "tune": (tune.tune, tune.EXAMPLES),
    "eval": (eval.evaluate, eval.EXAMPLES),
    "record": (record.record, record.EXAMPLES),
    "play": (play.play, play.EXAMPLES),
    "compare": (compare.compare, compare.EXAMPLES),
    "export": (export.export, export.EXAMPLES),
    "import": (import_archive.import_archive, import_archive.EXAMPLES),
    "verify": (verify.verify, verify.EXAMPLES),
    "bench": (bench.bench, bench.EXAMPLES),
    "watch": (watch.watch, watch.EXAMPLES),
    "dashboard": (dashboard.dashboard, dashboard.EXAMPLES),
    "doctor": (doctor.doctor, doctor.EXAMPLES),
}
"""Function and examples of each command, by name, in the order of the help."""

for name, (command, examples) in COMMANDS.items():
    app.command(name, cls=Command, epilog=examples)(command)
app.add_typer(spec.app, name="spec", epilog=spec.EXAMPLES)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"atari_dqn {__version__}")
        raise typer.Exit


@app.callback(epilog=EXAMPLES)
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Train, resume and evaluate DQN-family agents on Atari."""


def main() -> None:
    """Run the program and exit with the status of its result; show a traceback only for a bug of ours."""
    try:
        raise_on_interrupt()
        _prepare_streams()
        _refuse_lost_folder()
        status = _run(sys.argv[1:])
        if sys.stdout is not None:  # it may be closed
            sys.stdout.flush()
    except KeyboardInterrupt:
        if sys.stdout is not None:
            _discard_output()  # a line during whose writing the signal came would be written again
        _print_error("interrupted; what had been saved before is whole")
        status = _INTERRUPTED
    except (UserError, HaltedError, DamagedError, InfrastructureError) as error:
        _print_error("\n".join([f"error: {error}", *getattr(error, "__notes__", ())]))
        status = error.exit_code
    except InterruptedRunError as interruption:
        _print_error("\n".join([str(interruption), *getattr(interruption, "__notes__", ())]))
        status = interruption.exit_code
    except OSError as error:
        status = _report_system_error(error)
    sys.exit(status)


def _run(arguments: list[str]) -> int:
    """Run the command that the arguments name and return its exit code."""
    if _COMPLETION in os.environ:
        app(prog_name=NAME)  # a shell requests the completions of a line
    program = typer.main.get_command(app)
    try:
        with program.make_context(NAME, arguments) as context:
            program.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def _report_system_error(error: OSError) -> int:
    """Print the file and the cause of a system error and return the exit code; re-raise other errors."""
    if error.filename == _OUTPUT:
        _discard_output()
        if isinstance(error, BrokenPipeError):
            return 0  # the reader closed the pipe, as `head` does
    elif error.filename is None and error.errno not in _EXHAUSTED:
        raise error
    cause = (error.strerror or str(error)).lower()
    _print_error(f"error: {error.filename or NAME}: {cause}")
    return UnavailableError.exit_code if error.errno in UNAVAILABLE else UserError.exit_code


def _print_error(text: str) -> None:
    """Print a message on the standard error, made printable; ignore a stream that is closed or full."""
    if sys.stderr is None:  # closed: `print` would use the standard output, which may be a document
        return
    with suppress(OSError):
        columns = terminal_columns(sys.stderr)
        shown = "\n".join(lines_at_words(text, columns)) if columns else printable_lines(text)
        print(shown, file=sys.stderr, flush=True)  # noqa: T201 - the program's own output


class _Output(io.FileIO):
    """Name the standard output in its errors, which distinguishes them from those of other files.

    When the reader of a pipe or a terminal is gone during a command that saves its work on SIGHUP, raise that
    signal, as a closed terminal does in the end, and discard everything written afterwards.
    """

    _reader_left = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write to the file."""
        if self._reader_left:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as error:
            handles_hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
            if not self._is_without_reader(error) or not handles_hangup:
                error.filename = _OUTPUT
                raise
        self._reader_left = True
        signal.raise_signal(signal.SIGHUP)
        return memoryview(data).nbytes

    def _is_without_reader(self, error: OSError) -> bool:
        is_terminal = stat.S_ISCHR(os.fstat(self.fileno()).st_mode)  # `isatty` denies it of a closed one
        return isinstance(error, BrokenPipeError) or (is_terminal and error.errno == errno.EIO)


def _prepare_streams() -> None:
    """Name the output in its errors, and replace characters that a stream cannot encode."""
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


def _refuse_lost_folder() -> None:
    """Raise `UserError` if the current folder has been removed, which libraries report in other words."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise UserError("the current folder does not exist any more; change to another one") from None


def _discard_output() -> None:
    """Redirect the output to the null device, because the interpreter flushes it again at its end.

    Everything that is printed is flushed at once, so only what was being written is lost.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
