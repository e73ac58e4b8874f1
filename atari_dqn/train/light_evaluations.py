"""The light evaluations of a run, one for each period: played while training pauses, or while it goes on.

A period counts as evaluated when its score is in the log, and only then. A run that is resumed from a
checkpoint at which an evaluation was open evaluates at once, with the weights of the checkpoint
(docs/decisions/0077).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from atari_dqn.actors.weights import FlatWeights
from atari_dqn.clock import Every
from atari_dqn.evaluation.evaluate import StoppedError
from atari_dqn.evaluation.evaluator import Evaluator
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notify, Progress, Sink
from atari_dqn.train.learning import Learning
from atari_dqn.train.training_evaluations import Evaluations, Moment
from atari_dqn.types import StateDict

_WAIT_SECONDS = 0.1
_MANY_WAITS = 1200
"""Waits before a notice that gives the process id: two minutes."""
Stop = Callable[[], bool]


class LightEvaluations(ABC):
    """Plays a light evaluation for each period of frames. Raises `StoppedError` once `stop()` is true."""

    def __init__(self, evaluations: Evaluations, *, period_frames: int) -> None:
        self._evaluations = evaluations
        self._begun, self._scored = Every(period=period_frames), Every(period=period_frames)

    def is_due(self, env_frames: int) -> bool:
        """Return whether a period has ended whose evaluation has not begun."""
        return self._begun.is_due(env_frames)

    def mark(self, env_frames: int) -> None:
        """Count the periods up to a frame as evaluated, by a score that is in the log."""
        self._begun.mark(env_frames)
        self._scored.mark(env_frames)

    @abstractmethod
    def begin(self, stop: Stop) -> None:
        """Begin the evaluation of the current weights, when the one before is in the log."""

    @abstractmethod
    def poll(self) -> None:
        """Log the evaluation that is open, if it has arrived."""

    @abstractmethod
    def settle(self, stop: Stop) -> None:
        """Wait for the evaluation that is open, if any, and log it."""

    @abstractmethod
    def close(self) -> None:
        """Give up the evaluation that is open; it is due again."""

    def state_dict(self) -> StateDict:
        """Return the number of periods whose score is in the log."""
        return self._scored.state_dict()

    def load_state_dict(self, state: StateDict) -> None:
        """Restore it."""
        self._begun.load_state_dict(state)
        self._scored.load_state_dict(state)


class PausingLightEvaluations(LightEvaluations):
    """Plays in the learner's process. None is ever open between iterations."""

    def begin(self, stop: Stop) -> None:
        """Play the evaluation, and log it."""
        moment = self._evaluations.moment("light")
        self._evaluations.play(moment.kind, stop)
        self.mark(moment.env_frames)

    def poll(self) -> None:
        """Do nothing."""

    def settle(self, stop: Stop) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class ConcurrentLightEvaluations(LightEvaluations):
    """Orders evaluations of the evaluator while training goes on. At most one is open.

    A score has the steps of the weights that it is of, and is logged when it arrives: before the next one is
    begun, and before an evaluation of another kind, so that scores are logged in the order of their steps.
    """

    def __init__(
        self,
        evaluations: Evaluations,
        *,
        period_frames: int,
        training: Learning,
        evaluator: Evaluator,
        sinks: Sink,
        notify: Notify,
    ) -> None:
        super().__init__(evaluations, period_frames=period_frames)
        self._training, self._evaluator, self._sinks, self._notify = training, evaluator, sinks, notify
        self._weights = FlatWeights(training.acting_network)
        self._open: Moment | None = None

    def begin(self, stop: Stop) -> None:
        """Order the evaluation of the current weights, when the one before is in the log."""
        self.settle(stop)
        self._open = self._evaluations.moment("light")
        self._begun.mark(self._open.env_frames)
        self._evaluator.order(self._training.learner.updates, self._weights.read())

    def poll(self) -> None:
        """Log the evaluation that is open, if it has arrived."""
        self._arrives(within_seconds=0.0)

    def settle(self, stop: Stop) -> None:
        """Wait for the evaluation that is open, if any, and log it."""
        if self._arrives(within_seconds=0.0):
            return
        waiting = Progress(activity="light evaluation", done=0, total=1)
        self._sinks.handle(waiting)
        waits = 0
        while not self._arrives(within_seconds=_WAIT_SECONDS):
            if stop():
                raise StoppedError
            waits += 1
            if waits == _MANY_WAITS:
                self._report_wait()
        self._sinks.handle(replace(waiting, done=1))

    def close(self) -> None:
        """End the evaluator; an evaluation that is open is due again."""
        self._evaluator.close()
        self._open = None
        self._begun.load_state_dict(self._scored.state_dict())

    def _report_wait(self) -> None:
        """Report which process training waits for, as it may hang."""
        assert self._open is not None, "there is something to wait for"
        pid = self._evaluator.pid
        if pid is None:  # it has ended, which was reported, and is about to be started again
            return
        self._notify(
            "evaluator",
            f"training has waited for {_MANY_WAITS * _WAIT_SECONDS:.0f} seconds for the light evaluation of "
            f"step {self._open.step:,}, which process {pid} plays; if it hangs, kill it: "
            "it is started again and plays the same evaluation",
        )

    def _arrives(self, *, within_seconds: float) -> bool:
        """Log the evaluation that is open, if it arrives within a time; return whether none is open."""
        if self._open is None:
            return True
        games = self._evaluator.games(within_seconds)
        if games is None:
            return False
        self._evaluations.log(self._open, EvaluationScore.of(games))
        self.mark(self._open.env_frames)
        self._open = None
        return True


def light_evaluations(
    training: Learning, spec: Spec, evaluations: Evaluations, *, sinks: Sink, notify: Notify
) -> LightEvaluations:
    """Return the light evaluations of a run; those of free-running actors do not pause it."""
    period_frames = spec.evaluation.light_period_frames
    if spec.actors.mode != "free_running":
        return PausingLightEvaluations(evaluations, period_frames=period_frames)

    def report_end(reason: str, restarts: int) -> None:
        notify("evaluator", f"{reason}; it is started again and plays the same evaluation", restarts=restarts)

    evaluator = Evaluator(
        spec, training.envs.info, episodes=spec.evaluation.light_episodes, on_end=report_end
    )
    return ConcurrentLightEvaluations(
        evaluations,
        period_frames=period_frames,
        training=training,
        evaluator=evaluator,
        sinks=sinks,
        notify=notify,
    )
