"""The learner's handle of an actor in another process of this machine: it starts, orders and ends it."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from atari_dqn.actors.build import envs_of_actor
from atari_dqn.actors.orders import ActorDiedError, Letter
from atari_dqn.actors.process import run_actor
from atari_dqn.actors.step_counts import StepCounts
from atari_dqn.envs.processes import interrupts_blocked, parent_to_end_with
from atari_dqn.spec.schema import Spec

_SHUTDOWN_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True)
class LocalActor:
    """An actor's process and the learner's end of its pipe."""

    number: int
    envs: range
    process: SpawnProcess
    pipe: Connection

    def died(self, reason: str) -> ActorDiedError:
        """Make the error that this actor ended."""
        return ActorDiedError(
            f"actor {self.number} (environments {self.envs.start} to {self.envs.stop - 1}) {reason}"
        )

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
        """Receive an answer; `ActorDiedError` if the actor ended or failed."""
        try:
            letter, body = self.pipe.recv_bytes(), self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise self.died(self.exit_reason()) from None
        if letter == Letter.FAILED:
            raise self.died(f"failed:\n{body.decode()}")
        return body

    def check(self) -> None:
        """Raise `ActorDiedError` if the process has ended."""
        if self.process.exitcode is not None:
            raise self.died(self.exit_reason())

    def end(self) -> None:
        """End the process, which has a moment to end by itself."""
        self.pipe.close()
        self.process.join(_SHUTDOWN_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


def start_actor(spec: Spec, number: int, incarnation: int, published: Any, counts: StepCounts) -> LocalActor:
    """Start the process of an actor, which counts its steps in `counts`."""
    context = multiprocessing.get_context("spawn")  # no copies of threads, locks or of a CUDA context
    ours, theirs = context.Pipe()
    process = context.Process(
        target=run_actor,
        args=(theirs, parent_to_end_with(), spec, number, incarnation, published, counts),
        name=f"actor-{number}",
        daemon=True,
    )
    with interrupts_blocked():  # a terminal signals the whole process group; only the learner reacts
        process.start()
    theirs.close()
    return LocalActor(number=number, envs=envs_of_actor(spec, number), process=process, pipe=ours)
