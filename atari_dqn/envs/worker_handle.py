"""A worker process from its parent's side: sending commands, reading answers, finding out how it ended."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from atari_dqn.envs.worker import Command, Outcome
from atari_dqn.errors import HaltedError, UserError

GOODBYE_SECONDS = 2.0
"""How long workers have to leave once their pipes are closed."""


class WorkerDiedError(HaltedError):
    """A worker process ended: says which, the environments it held, and why."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One worker of a pool."""

    index: int
    envs: range
    process: SpawnProcess
    pipe: Connection

    def died(self, reason: str) -> WorkerDiedError:
        """Return the error for this worker and what became of it."""
        return WorkerDiedError(
            f"worker {self.index} (environments {self.envs.start} to {self.envs.stop - 1}) {reason}"
        )

    def how_it_ended(self) -> str:
        """Return by which signal or exit code the process ended."""
        self.process.join(GOODBYE_SECONDS)
        code = self.process.exitcode
        if code is None:
            return "hung up without ending"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def go_on(self) -> None:
        """Continue the process if somebody has stopped it."""
        assert self.process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGCONT)

    def tell(self, command: Command, *contents: object) -> None:
        """Send a command and what belongs to it; `WorkerDiedError` where nobody reads it."""
        try:
            self.pipe.send_bytes(command)
            for content in contents:
                self.pipe.send(content)
        except OSError:
            raise self.died(self.how_it_ended()) from None

    def answer(self) -> Any:
        """Return what the worker sent; a dead one may have sent why before it ended."""
        try:
            outcome = self.pipe.recv_bytes()
            content = None if outcome == Outcome.DONE else self.pipe.recv()
        except (EOFError, OSError):
            raise self.died(self.how_it_ended()) from None
        if outcome == Outcome.USER_ERROR:
            raise UserError(content)
        if outcome == Outcome.FAILED:
            raise self.died(f"failed:\n{content}")
        return content
