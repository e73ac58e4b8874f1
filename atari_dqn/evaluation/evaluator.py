"""The evaluator: a process of this machine that scores published weights while training goes on.

    learner     weights of the moment ──> order ·  ·  ·  ·  ·  games
    evaluator                             plays the evaluation ──┘

It has environments and a network of its own, and touches nothing of the training. If it ends, it is started
again after a while, and plays the same evaluation: the weights are in shared memory, which outlives it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float32

from atari_dqn.actors.local_process import LocalProcess, start_process
from atari_dqn.actors.orders import ActorDiedError, Letter
from atari_dqn.actors.records import Record
from atari_dqn.actors.snapshot import SharedSnapshot
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.silence import SilenceLimit
from atari_dqn.evaluation.evaluator_process import Games, decode_games, run_evaluator
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

MOST_ENDS = 5
"""Times that the evaluator may end in one evaluation; then the evaluation fails."""
_MOST_WAITS, _WAIT_SECONDS = 30, 1.0


class Evaluator:
    """Plays one evaluation at a time, on one core. Its process is started by the first order.

    `on_end` is called with the reason and the number of restarts when the process has ended by itself.
    """

    def __init__(
        self,
        spec: Spec,
        info: GameInfo,
        *,
        episodes: int,
        on_end: Callable[[str, int], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.record = Record()
        self.process: LocalProcess | None = None
        self._on_end, self._now = on_end, now
        self._published = SharedSnapshot(FlatWeights(build_network(spec, info, torch.device("cpu"))).size)
        self._arguments = (spec, info, self._published, episodes)
        self._ends = 0
        """Times that the process has ended in this evaluation."""

    @property
    def pid(self) -> int | None:
        """The number of the process; None while there is none."""
        return self.process.process.pid if self.process is not None else None

    def order(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Order an evaluation of some weights; return at once. The evaluation before must have arrived."""
        self._published.publish(version, flat)
        self._ends = 0
        self._send()

    def games(self, timeout_seconds: float) -> Games | None:
        """Return the games of the ordered evaluation; None if they do not arrive within a time.

        Raise `ActorDiedError` if the process has ended too often.
        """
        if self.process is None:
            time.sleep(timeout_seconds)
            self._send()
            return None
        if not self.process.pipe.poll(timeout_seconds):
            return None
        try:
            games = decode_games(self.process.answer(self._silence_limit(self.process)))
        except ActorDiedError as error:
            self._lose(str(error))
            return None
        self.record.received(self._now(), steps=0)
        return games

    def close(self) -> None:
        """End the process, and with it an evaluation that is being played; may be called twice."""
        if self.process is not None:
            self.process.process.kill()  # a game may take minutes
            self.process.end()
            self.process = None

    @staticmethod
    def _silence_limit(process: LocalProcess) -> SilenceLimit:
        """Return a limit on waits for an order to be read, and for the rest of games."""
        return SilenceLimit(
            lambda: False,
            most_waits=_MOST_WAITS,
            waits_at_end=_MOST_WAITS,
            wait_seconds=_WAIT_SECONDS,
            resume=process.resume,
        )

    def _send(self) -> None:
        """Send the order, to a new process if there is none and one is due."""
        if self.process is None:
            if self._now() < self.record.next_start:
                return
            try:
                self.process = start_process("the evaluator", run_evaluator, *self._arguments)
            except OSError as error:  # a start that the system refuses is one more end
                self._lose(f"the evaluator could not be started: {error}")
                return
            self.record.started(self._now())
        try:
            self.process.send(Letter.PLAY, self._silence_limit(self.process))
        except ActorDiedError as error:
            self._lose(str(error))

    def _lose(self, error: str) -> None:
        """End what is left of the process, to start it after a while; raise if it has ended too often."""
        self.close()
        self._ends += 1
        if self._ends == MOST_ENDS:
            raise ActorDiedError(f"{error}; it has ended {MOST_ENDS} times in one evaluation")
        self.record.ended(self._now(), error, steps_played=0)
        self._on_end(error, self.record.restarts)
