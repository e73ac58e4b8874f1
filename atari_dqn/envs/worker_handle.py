"""The parent's handle of a worker process: it sends commands, receives answers and reports how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from atari_dqn.envs.processes import continue_process, signal_name
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

    def send(self, command: Command, *contents: object) -> None:
        """Send a command and its arguments; `WorkerDiedError` if the process has ended."""
        try:
            self.pipe.send_bytes(command)
            for content in contents:
                self.pipe.send(content)
        except OSError:
            raise self.died_error(self.exit_reason()) from None

    def receive(self) -> Any:
        """Receive the result of a command; `WorkerDiedError` or `UserError` if the worker failed."""
        try:
            outcome = self.pipe.recv_bytes()
            content = None if outcome == Outcome.DONE else self.pipe.recv()
        except (EOFError, OSError):
            raise self.died_error(self.exit_reason()) from None
        if outcome == Outcome.USER_ERROR:
            raise UserError(content)
        if outcome == Outcome.FAILED:
            raise WorkerFailedError(f"{self.died_error('failed')}:\n{content}")
        return content
