"""The evaluations of a run: played on the weights of the moment, logged, recorded for a video."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol as Interface

from atari_dqn.evaluate import evaluate
from atari_dqn.human import fingerprint
from atari_dqn.metrics.events import Progress, Row, Sink, Value
from atari_dqn.protocol import CheckpointChoice, Protocol
from atari_dqn.scores import EvaluationScore, score_protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.train.training import Training
from atari_dqn.train.videos import Videos
from atari_dqn.types import StateDict

_WEIGHTS: dict[str, CheckpointChoice] = {"final": "last", "best": "best"}
"""Which weights are scored; of an evaluation on the way those of the moment."""


class Notify(Interface):
    """Reports something that happened once to every sink."""

    def __call__(self, kind: str, message: str, **data: object) -> None:
        """Report an event of a kind, in words, with its data."""
        ...


def session_protocol(spec: Spec, kind: str, rom_md5: str) -> Protocol:
    """Return the protocol of a run's own `light`, `full` or `final` evaluation, or of its `best`."""
    return score_protocol(
        spec,
        episodes=episodes_of(spec, kind),
        checkpoint=_WEIGHTS.get(kind, "current"),
        rom_md5=rom_md5,
    )


def episodes_of(spec: Spec, kind: str) -> int:
    """Return how many games an evaluation of a kind has."""
    evaluation = spec.evaluation
    return evaluation.light_episodes if kind == "light" else evaluation.full_episodes


class Evaluations:
    """Plays evaluations of a training and keeps their scores."""

    def __init__(
        self, training: Training, spec: Spec, *, sinks: Sink, videos: Videos, notify: Notify
    ) -> None:
        self._training, self._spec = training, spec
        self._sinks, self._videos, self._notify = sinks, videos, notify
        self.scores: list[tuple[int, EvaluationScore]] = []
        """Step and score of each full and final evaluation."""
        self.score_protocol: str | None = None
        """Fingerprint of the latest of these."""

    def play(self, kind: str, stop: Callable[[], bool]) -> EvaluationScore:
        """Play an evaluation and log it; one that is stopped raises `StoppedError` and is played again."""
        tracer = self._videos.tracer(kind)
        played = evaluate(
            self._training.learner.online,
            self._spec,
            episodes=episodes_of(self._spec, kind),
            on_progress=lambda done, total: self._sinks.handle(
                Progress(activity=f"{kind} evaluation", done=done, total=total)
            ),
            stop=stop,
            tracer=tracer,
        )
        score = EvaluationScore.of(played)
        self._log(kind, score)
        self._videos.take(kind, played, tracer)
        return score

    def state_dict(self) -> StateDict:
        """Return the scores so far, as plain data."""
        return {
            "scores": [[step, asdict(score)] for step, score in self.scores],
            "score_protocol": self.score_protocol,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Take over what a checkpoint recorded."""
        self.scores = [(step, EvaluationScore.of_state(values)) for step, values in state["scores"]]
        self.score_protocol = state["score_protocol"]

    def _log(self, kind: str, score: EvaluationScore) -> None:
        clock = self._training.clock
        protocol = session_protocol(self._spec, kind, self._training.lanes.info.rom_md5).digest()
        if kind != "light":
            self.scores.append((clock.steps, score))
            self.score_protocol = protocol
        where: dict[str, Value] = {"step": clock.steps, "env_frames": clock.env_frames, "eval_type": kind}
        self._sinks.handle(Row(table="eval_log", values=where | score.row() | {"protocol": protocol}))
        self._notify(
            "evaluation",
            f"{kind} evaluation: {score} [{fingerprint(protocol)}]",
            returns=score.returns,
            lengths_frames=score.lengths_frames,
            protocol=protocol,
        )
