"""The learner's handle of an actor on a node: its open orders, and the steps that it has played."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ray

from atari_dqn.actors.orders import ActorDiedError, ActorFailedError
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.formatting import printable_lines
from atari_dqn.scale.on_ray.remote_actor import Snapshot

_SILENT_SECONDS = 120.0
"""Time without an answer after which an actor is considered lost. A fragment takes seconds."""


class RayActor:
    """Implements `Handle`. Ray carries out the orders of an actor one after the other."""

    def __init__(self, number: int, remote: Any, snapshot: Callable[[], Snapshot]) -> None:
        self._number, self._remote, self._snapshot = number, remote, snapshot
        self._open: deque[tuple[ray.ObjectRef[Any], ray.ObjectRef[Any]]] = deque()
        self._report: ray.ObjectRef[Any] | None = None
        self.steps_played = 0
        """Steps played in this incarnation, as far as they have been reported."""

    @property
    def next_answer(self) -> ray.ObjectRef[Any] | None:
        """The reference of the answer to the oldest open order."""
        return self._open[0][1] if self._open else None

    def send(self, order: bytes, silence: SilenceLimit) -> None:  # noqa: ARG002 — Ray waits for no actor
        """Send an order, with the newest weights."""
        self._open.append(self._remote.obey.remote(order, self._snapshot()))

    def answer(self, silence: SilenceLimit) -> bytes:  # noqa: ARG002 — Ray has a limit of its own
        """Receive the answer to the oldest open order; `ActorDiedError` if the actor ended or failed."""
        try:
            steps, body = ray.get(list(self._open[0]), timeout=_SILENT_SECONDS)
        except ray.exceptions.RayTaskError as error:
            failure = self._died(f"failed:\n{printable_lines(str(error))}")
            raise ActorFailedError(str(failure)) from None
        except ray.exceptions.GetTimeoutError:
            raise self._died(f"has not answered for {_SILENT_SECONDS:.0f} seconds") from None
        except ray.exceptions.RayError as error:
            raise self._died(f"or its node has ended ({type(error).__name__})") from None
        self._open.popleft()
        self.steps_played = max(self.steps_played, steps)
        answer: bytes = body
        return answer

    def check(self, silence: SilenceLimit) -> None:
        """Do nothing: `answer` raises the error of an actor that has ended."""

    def resume(self) -> None:
        """Do nothing: the process may be on another machine."""

    def read_report(self) -> None:
        """Read how many steps have been played, and ask again; an actor that has ended reports nothing."""
        if self._report is not None:
            done, _ = ray.wait([self._report], timeout=0)
            if not done:
                return
            with suppress(ray.exceptions.RayError):
                self.steps_played = max(self.steps_played, ray.get(self._report))
        self._report = self._remote.steps_played.remote()

    def end(self) -> None:
        """End the actor."""
        with suppress(ray.exceptions.RayError, RuntimeError):  # a cluster that has ended has no actors
            ray.kill(self._remote)

    def _died(self, reason: str) -> ActorDiedError:
        return ActorDiedError(f"actor {self._number} {reason}")
