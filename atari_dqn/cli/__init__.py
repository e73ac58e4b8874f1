"""The command line: `dqn`. A command imports its packages when it runs, so that `--help` is quick.

This module imports almost nothing: until `end_on_interrupt` has run, Ctrl-C ends in a traceback.
"""

# `signal` imports other modules, during which Ctrl-C would find no handler; mypy knows only that one.
import _signal as signal  # type: ignore[import-not-found]
import os

_STATUS = 130
_MESSAGE = b"interrupted before anything had begun\n"


def main() -> None:
    """Run the program `dqn`. SIGINT ends the process from the end of its work on, with the same status."""
    end_on_interrupt()
    from atari_dqn.cli.app import main as run

    try:
        run()
    except SystemExit as ended:
        _keep_status(int(ended.code or 0))
        raise


def end_on_interrupt() -> None:
    """End the process at SIGINT until `raise_on_interrupt`; where SIGINT is ignored, leave it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Raise `KeyboardInterrupt` at SIGINT again, as Python does by default."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _keep_status(status: int) -> None:
    """End the process with a status at SIGINT, which would be a traceback while Python ends its threads."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(status))


def _end(_: int, __: object) -> None:
    os.write(2, _MESSAGE)
    os._exit(_STATUS)


__all__ = ["main"]
