"""Ctrl-C while the program loads itself: it has begun nothing yet, and ends at once, in words."""

# `signal` itself imports other modules, in which Ctrl-C would meet no handler yet; mypy knows only that one.
import _signal as signal  # type: ignore[import-not-found]
import os

_STATUS = 130
_MESSAGE = b"interrupted before anything had begun\n"


def end_on_interrupt() -> None:
    """Have SIGINT end the process until `raise_on_interrupt`; a process that ignores it goes on to."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_on_interrupt() -> None:
    """Have SIGINT raise `KeyboardInterrupt`, as Python does."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_: int, __: object) -> None:
    os.write(2, _MESSAGE)
    os._exit(_STATUS)
