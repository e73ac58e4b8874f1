"""The parent's handle of a worker process: it sends commands, receives answers and reports how it ended."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from atari_dqn.envs.pieces import SilentError, receive_bytes, send_bytes
from atari_dqn.envs.processes import continue_process, signal_name
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.envs.worker import Command, Outcome
from atari_dqn.errors import InfrastructureError, UserError

SHUTDOWN_SECONDS = 2.0
"""Time that workers have to end after their pipes are closed."""


class WorkerDiedError(InfrastructureError):
    """A worker process ended or does not answer; the message names it, its environments and the reason."""


class WorkerFailedError(WorkerDiedError):
    """A worker raised an exception, whose traceback the message has."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker of a pool."""

    index: int
    envs: range
    """Indices of its environments."""
    process: SpawnProcess
    pipe: Connection

    def died_error(self, reason: str) -> WorkerDiedError:
        """Create the error about this worker."""
        return WorkerDiedError(
            f"worker {self.index} (environments {self.envs.start} to {self.envs.stop - 1}) {reason}"
        )

    def exit_reason(self) -> str:
        """Describe by which signal or exit code the process ended."""
        self.process.join(SHUTDOWN_SECONDS)
        code = self.process.exitcode
        if code is None:
            return "closed its pipe without ending"
        if code < 0:
            return f"was killed by {signal_name(-code)}"
        return f"ended with exit code {code}"

    def resume(self) -> None:
        """Continue the process if it was stopped (SIGSTOP)."""
        continue_process(self.process)

    def send(self, command: Command) -> None:
        """Send a command. If the process has ended, `receive` says so, with the error that it has sent."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send_bytes(command)

    def send_argument(self, argument: object, silence: SilenceLimit) -> None:
        """Send the argument of a command; `WorkerDiedError` if the worker does not read it.

        `silence`: the limit on waits for a piece of it to be read, since the worker may be stopped.
        """
        with self._end_reported(), suppress(BrokenPipeError, ConnectionResetError):  # as in `send`
            send_bytes(self.pipe, pickle.dumps(argument), silence)

    def receive(self, silence: SilenceLimit) -> Any:
        """Receive the result of a command; `WorkerDiedError` or `UserError` if the worker failed.

        The outcome has begun to arrive; it is small, and therefore whole. `silence`: the limit on waits for a
        piece of what follows it, since the worker may be stopped.
        """
        with self._end_reported():
            outcome = self.pipe.recv_bytes()
            content = b"" if outcome == Outcome.DONE else receive_bytes(self.pipe, silence)
        if outcome == Outcome.USER_ERROR:
            raise UserError(content.decode())
        if outcome == Outcome.FAILED:
            raise WorkerFailedError(f"{self.died_error('failed')}:\n{content.decode()}")
        return pickle.loads(content) if outcome == Outcome.RESULT else None  # noqa: S301 - of our own process

    @contextmanager
    def _end_reported(self) -> Iterator[None]:
        """Convert errors about the other end of the pipe into the `WorkerDiedError` with the reason."""
        try:
            yield
        except SilentError as error:
            raise self.died_error(str(error)) from None
        except (EOFError, OSError):
            raise self.died_error(self.exit_reason()) from None
