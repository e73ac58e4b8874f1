"""The errors a user can meet, each with the exit code its command ends with."""

import signal


class UserError(ValueError):
    """The input is wrong: a spec, a path, an option. Says what was found, what was expected, the remedy."""

    exit_code = 2


class DiskFullError(UserError):
    """A file has no room: on its disk, or within a quota or a limit."""


class HaltedError(RuntimeError):
    """The run was stopped: by a failure gate, or because a worker process died."""

    exit_code = 3


class DamagedError(RuntimeError):
    """A run directory or checkpoint on disk is not what its manifest says."""

    exit_code = 4


class InterruptedRunError(Exception):
    """A run was asked to end by a signal, and has been saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(signal_number).name}")
        self.exit_code = 128 + signal_number
