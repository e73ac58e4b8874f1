"""A process of this machine that carries out orders from a pipe, and the learner's end of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from atari_dqn.actors.orders import ActorDiedError, ActorFailedError, Letter
from atari_dqn.envs.pieces import SilentError, receive_bytes, send_bytes
from atari_dqn.envs.processes import continue_process, signal_name, start_child
from atari_dqn.envs.silence import SilenceLimit

SHUTDOWN_SECONDS = 2.0
"""Time that a process has to end by itself."""


@dataclass(frozen=True, kw_only=True)
class LocalProcess:
    """Implements `Handle`."""

    name: str
    process: SpawnProcess
    pipe: Connection

    def died_error(self, reason: str) -> ActorDiedError:
        """Create the error that names this process and the reason why it ended."""
        return ActorDiedError(f"{self.name} {reason}")

    def exit_reason(self) -> str:
        """Wait up to `SHUTDOWN_SECONDS` for the process to end, and describe how it ended."""
        self.process.join(SHUTDOWN_SECONDS)
        code = self.process.exitcode
        if code is None:
            return "closed its pipe without ending"
        if code < 0:
            return f"was killed by {signal_name(-code)}"
        return f"ended with exit code {code}"

    def send(self, order: bytes, silence: SilenceLimit) -> None:
        """Send an order; `ActorDiedError` if the process does not read it. If it has ended, `answer` says so.

        `silence`: the limit on waits for the process to read, after which it is given up: it may be stopped.
        """
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # its error may still be received
                send_bytes(self.pipe, order, silence)
        except SilentError as error:
            raise self.died_error(str(error)) from None

    def answer(self, silence: SilenceLimit) -> bytes:
        """Receive an answer that has begun to arrive; `ActorDiedError` if the process ended or failed.

        `silence`: the limit on waits for the rest, after which the process is given up: it may be stopped.
        """
        try:
            answer = receive_bytes(self.pipe, silence)
        except SilentError as error:
            raise self.died_error(str(error)) from None
        except (EOFError, OSError):
            raise self.died_error(self.exit_reason()) from None
        letter, body = answer[:1], answer[1:]
        if letter == Letter.FAILED:
            raise ActorFailedError(f"{self.name} failed:\n{body.decode().rstrip()}")
        return body

    def check(self, silence: SilenceLimit) -> None:
        """Raise `ActorDiedError` if the process has ended: with its own error, if it has sent one."""
        while self.process.exitcode is not None:
            self.answer(silence)  # raises at the latest where the pipe ends

    def resume(self) -> None:
        """Continue the process if it was stopped (SIGSTOP)."""
        continue_process(self.process)

    def end(self, *, within_seconds: float = SHUTDOWN_SECONDS) -> None:
        """End the process, which has a moment to end by itself."""
        self.pipe.close()
        self.process.join(within_seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


def start_process(name: str, target: Callable[..., None], *arguments: Any) -> LocalProcess:
    """Start a process by `start_child`. `name`: what it is, with its number, for errors."""
    process, pipe = start_child(target, *arguments, name=name)
    return LocalProcess(name=name, process=process, pipe=pipe)
