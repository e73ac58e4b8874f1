"""The errors that are reported to the user, each with the exit code of the command."""

import signal


class UserError(ValueError):
    """The user's input is wrong: a spec, a path or an option.

    The message states what was found, what was expected, and the remedy.
    """

    exit_code = 2


class DiskFullError(UserError):
    """A file could not be written: the disk is full, or a quota or a limit on file sizes is reached."""


class UnavailableError(UserError):
    """A disk does not answer, or the machine lacks memory or open files: the same may succeed later."""

    exit_code = 5


class HaltedError(RuntimeError):
    """The run was halted by a failure gate, and would be again without a change."""

    exit_code = 3


class DamagedError(RuntimeError):
    """A run directory or checkpoint does not match its manifest, or cannot be decoded."""

    exit_code = 4


class ExplainedDamageError(DamagedError):
    """Damage whose message already states the remedy."""


class InfrastructureError(RuntimeError):
    """The command lacks a process, such as a worker or the head of a Ray cluster, a thread or memory.

    Nothing is wrong with the run or its files: it resumes from its last checkpoint.
    """

    exit_code = 5


class InterruptedRunError(Exception):
    """A signal interrupted the run, and a checkpoint has been saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(signal_number).name}")
        self.exit_code = 128 + signal_number

    def __reduce__(self) -> tuple[type, tuple[int], dict[str, object]]:
        """Make a copy from the signal and the notes, as another process does."""
        return type(self), (self.exit_code - 128,), self.__dict__


def is_of_memory(error: BaseException) -> bool:
    """Return whether an error says that Python or torch could not allocate memory."""
    return isinstance(error, MemoryError) or any(
        words in str(error) for words in ("can't allocate memory", "out of memory")
    )
