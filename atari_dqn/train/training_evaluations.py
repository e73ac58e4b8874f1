"""The evaluations of a run: play them with the current weights, log the scores, record a video."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from atari_dqn.envs.pool import WorkerDiedError
from atari_dqn.evaluation.evaluate import StoppedError, evaluate
from atari_dqn.evaluation.progress import EvaluationKey, EvaluationProgress
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.formatting import fingerprint
from atari_dqn.record.recorder import median_game
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.scores import EvaluationEpisode, EvaluationScore, score_protocol
from atari_dqn.spec.protocol import CheckpointChoice, Protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notice, Notify, Progress, Row, Sink, Value
from atari_dqn.train.evaluation_videos import EvaluationVideos
from atari_dqn.train.learning import Learning
from atari_dqn.types import StateDict

_WEIGHTS: dict[str, CheckpointChoice] = {"final": "last", "best": "best"}
"""The weights that each kind of evaluation scores; the other kinds score the current weights."""


def session_protocol(spec: Spec, kind: str, rom_md5: str) -> Protocol:
    """Return the protocol of a run's own `light`, `full` or `final` evaluation, or of its `best`."""
    return score_protocol(
        spec,
        episodes=episodes_of(spec, kind),
        checkpoint=_WEIGHTS.get(kind, "current"),
        rom_md5=rom_md5,
    )


def session_protocols(spec: Spec, rom_md5: str) -> dict[str, dict[str, Any]]:
    """Return the fields of every protocol under which a run is evaluated, by fingerprint."""
    protocols = [session_protocol(spec, kind, rom_md5) for kind in ("light", "full", "final", "best")]
    return {protocol.digest(): asdict(protocol) for protocol in protocols}


def episodes_of(spec: Spec, kind: str) -> int:
    """Return the number of games in an evaluation of a kind."""
    evaluation = spec.evaluation
    return evaluation.light_episodes if kind == "light" else evaluation.full_episodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The kind of an evaluation, and the steps and frames for which its weights were trained."""

    kind: str
    step: int
    env_frames: int


class Evaluations:
    """Plays the evaluations of a training and keeps their scores."""

    def __init__(
        self,
        training: Learning,
        spec: Spec,
        run: RunDirectory,
        *,
        sinks: Sink,
        videos: EvaluationVideos,
        notify: Notify,
    ) -> None:
        self._training, self._spec, self._run = training, spec, run
        self._sinks, self._videos, self._notify = sinks, videos, notify
        self.scores: list[tuple[int, EvaluationScore]] = []
        """Step and score of each full and final evaluation."""
        self.ale_versions: dict[int, str] = {}
        """The version of the emulator under which these were played, by step."""
        self.score_protocol: str | None = None
        """Digest of the protocol of the latest of these scores."""

    def play(self, kind: str, stop: Callable[[], bool]) -> EvaluationScore:
        """Play an evaluation and log it.

        Raise `StoppedError` once `stop()` returns true, `WorkerDiedError` if a worker of the evaluation or of
        the training has died. The games finished by then are saved and are not played again.
        """

        def stop_or_fail() -> bool:
            self._training.envs.check()
            return stop()

        tracer = self._videos.tracer(kind)
        protocol = self._protocol(kind)
        network, step = self._training.acting_network, self._training.clock.steps
        key = EvaluationKey.of(network, self._spec, step=step, protocol=protocol)
        with self._progress(kind, key) as progress:
            played = self._finish_games(kind, progress, stop_or_fail, tracer)
        score = EvaluationScore.of(played)
        self.log(self.moment(kind), score)
        self._videos.record(played, tracer, protocol=protocol, weights_sha256=key.weights_sha256)
        return score

    def moment(self, kind: str) -> Moment:
        """Return the moment of an evaluation of the current weights."""
        clock = self._training.clock
        return Moment(kind=kind, step=clock.steps, env_frames=clock.env_frames)

    def log(self, moment: Moment, score: EvaluationScore) -> None:
        """Log the score of an evaluation."""
        played_under = self._protocol(moment.kind)
        protocol = played_under.digest()
        if moment.kind != "light":
            self.scores.append((moment.step, score))
            self.ale_versions[moment.step] = played_under.ale_version
            self.score_protocol = protocol
        where: dict[str, Value] = {
            "step": moment.step, "env_frames": moment.env_frames, "eval_type": moment.kind,
        }  # fmt: skip
        self._sinks.handle(Row(table="eval_log", values=where | score.row() | {"protocol": protocol}))
        games = {"returns": score.returns, "lengths_frames": score.lengths_frames}
        self._sinks.handle(
            Notice(
                kind="evaluation",
                step=moment.step,
                env_frames=moment.env_frames,
                message=f"{moment.kind} evaluation: {score} [{fingerprint(protocol)}]",
                data={**games, "protocol": protocol},
            )
        )

    def forget_progress(self) -> None:
        """Remove the file of finished games, at the end of the run, when every score is in a checkpoint."""
        self._run.evaluation_progress.unlink(missing_ok=True)

    def state_dict(self) -> StateDict:
        """Return the scores so far, as plain data."""
        return {
            "scores": [[step, asdict(score)] for step, score in self.scores],
            "ale_versions": [*self.ale_versions.items()],
            "score_protocol": self.score_protocol,
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Restore the scores from a checkpoint."""
        self.scores = [(step, EvaluationScore.of_state(values)) for step, values in state["scores"]]
        began_with = self._ale_version_at_start()  # of scores in checkpoints of earlier versions
        self.ale_versions = {step: began_with for step, _ in self.scores}
        self.ale_versions |= dict(state.get("ale_versions", []))
        self.score_protocol = state["score_protocol"]

    def _ale_version_at_start(self) -> str:
        protocols = self._run.read_provenance().get("protocols", {}).values()
        return next((str(protocol["ale_version"]) for protocol in protocols), "")

    @contextmanager
    def _progress(self, kind: str, key: EvaluationKey) -> Iterator[EvaluationProgress]:
        """Open the file of games that this evaluation finished earlier, and report how many it holds."""
        total = episodes_of(self._spec, kind)
        with closing(EvaluationProgress(self._run.evaluation_progress, key)) as progress:

            def kept() -> str:
                return f"{len(progress.finished)} of {total} games of the {kind} evaluation are kept"

            if progress.finished:
                self._notify("evaluation resumed", f"{kept()} from an earlier attempt")
            try:
                yield progress
            except StoppedError:
                self._notify("evaluation stopped", kept())
                raise
            except WorkerDiedError as error:
                raise WorkerDiedError(f"{error}; {kept()}") from error

    def _finish_games(
        self, kind: str, progress: EvaluationProgress, stop: Callable[[], bool], tracer: Tracer | None
    ) -> tuple[EvaluationEpisode, ...]:
        """Play the missing games; play the video's game again if it was finished earlier, without a trace."""
        before = dict(progress.finished)
        play = partial(
            evaluate,
            self._training.acting_network,
            self._spec,
            episodes=episodes_of(self._spec, kind),
            stop=stop,
            tracer=tracer,
        )
        played = play(
            finished=before,
            on_finished=progress.add,
            on_progress=lambda done, total: self._sinks.handle(
                Progress(activity=f"{kind} evaluation", done=done, total=total)
            ),
        )
        shown = median_game(played)
        if tracer is not None and shown in before:
            play(finished={episode: game for episode, game in enumerate(played) if episode != shown})
        return played

    def _protocol(self, kind: str) -> Protocol:
        return session_protocol(self._spec, kind, self._training.envs.info.rom_md5)
