"""A process of this machine that carries out orders from a pipe, and the learner's end of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from atari_dqn.actors.orders import ActorDiedError, ActorFailedError, Letter
from atari_dqn.envs.processes import continue_process, start_child

_SHUTDOWN_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class LocalProcess:
    """Implements `Handle`."""

    name: str
    process: SpawnProcess
    pipe: Connection

    def died(self, reason: str) -> ActorDiedError:
        """Make the error that this process ended."""
        return ActorDiedError(f"{self.name} {reason}")

    def exit_reason(self) -> str:
        """Describe how the process ended."""
        self.process.join(_SHUTDOWN_SECONDS)
        code = self.process.exitcode
        if code is None:
            return "closed its pipe without ending"
        return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"

    def send(self, order: bytes) -> None:
        """Send an order; `ActorDiedError` if the process has ended."""
        try:
            self.pipe.send_bytes(order)
        except OSError:
            raise self.died(self.exit_reason()) from None

    def answer(self) -> bytes:
        """Receive an answer; `ActorDiedError` if the process ended or failed."""
        try:
            letter, body = self.pipe.recv_bytes(), self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise self.died(self.exit_reason()) from None
        if letter == Letter.FAILED:
            raise ActorFailedError(f"{self.name} failed:\n{body.decode().rstrip()}")
        return body

    def check(self) -> None:
        """Raise `ActorDiedError` if the process has ended."""
        if self.process.exitcode is not None:
            raise self.died(self.exit_reason())

    def resume(self) -> None:
        """Continue the process if it was stopped (SIGSTOP)."""
        continue_process(self.process)

    def end(self) -> None:
        """End the process, which has a moment to end by itself."""
        self.pipe.close()
        self.process.join(_SHUTDOWN_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


def start_process(name: str, target: Callable[..., None], *arguments: Any) -> LocalProcess:
    """Start a process by `start_child`. `name`: what it is, with its number, for errors."""
    process, pipe = start_child(target, *arguments, name=name)
    return LocalProcess(name=name, process=process, pipe=pipe)
