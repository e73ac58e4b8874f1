"""Run a training in a run directory, with evaluations, checkpoints and interruptions between iterations.

Between iterations the state is consistent. Whether and how often evaluations and checkpoints happen does not
change the learning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict

import torch

from atari_dqn.clock import Every, frames_to_steps
from atari_dqn.errors import InterruptedRunError
from atari_dqn.evaluation.evaluate import StoppedError
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.run.threads import KEY
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notice, Row
from atari_dqn.telemetry.writers import Sinks, TableSink
from atari_dqn.train.evaluation_videos import EvaluationVideos
from atari_dqn.train.health import HealthMonitor
from atari_dqn.train.interrupt import SignalGuard
from atari_dqn.train.learning import Learning
from atari_dqn.train.light_evaluations import light_evaluations
from atari_dqn.train.memory_log import MemoryLog, memory_logs
from atari_dqn.train.prediction_log import PredictionLog
from atari_dqn.train.replay_log import ReplayLog
from atari_dqn.train.saving import Saving
from atari_dqn.train.throughput import Throughput
from atari_dqn.train.training_evaluations import Evaluations
from atari_dqn.types import StateDict


class Session:
    """Runs a training until the end of its budget, an interrupt or a halt."""

    def __init__(
        self,
        training: Learning,
        spec: Spec,
        *,
        run: RunDirectory,
        tables: TableSink,
        sinks: Sinks,
        checkpoints: CheckpointStore,
        health: HealthMonitor,
    ) -> None:
        self.training, self.spec, self._directory = training, spec, run
        self.tables, self.sinks, self.checkpoints, self.health = tables, sinks, checkpoints, health
        self._saving = Saving(
            spec.checkpoint,
            training.clock,
            checkpoints=checkpoints,
            health=health,
            notify=self.notice,
            training=training.state_dict,
            bookkeeping=self.state_dict,
        )
        self._full = Every(period=spec.evaluation.full_period_frames)
        self._replay_log = ReplayLog(training, seed=spec.seed, period_steps=spec.logging.replay_period_steps)
        self._reports: tuple[PredictionLog | MemoryLog, ...] = (
            PredictionLog(training, seed=spec.seed),
            *memory_logs(training, spec),
        )
        self.videos = EvaluationVideos(training, spec, run, self.notice)
        self.evaluations = Evaluations(
            training, spec, run, sinks=sinks, videos=self.videos, notify=self.notice
        )
        self._light = light_evaluations(training, spec, self.evaluations, sinks=sinks, notify=self.notice)
        self._throughput = Throughput(training.stopwatch, training.envs)
        self._elapsed_before_seconds = 0.0
        self._began = time.monotonic()
        self.total_frames = spec.training.total_frames
        self.finished = False
        """Whether the final evaluation is saved; the run then continues only with a larger budget."""

    @property
    def elapsed_seconds(self) -> float:
        """Time spent on the run in seconds, over all resumes."""
        return self._elapsed_before_seconds + time.monotonic() - self._began

    def extend(self, total_frames: int) -> None:
        """Raise the budget to `total_frames` emulator frames."""
        self.finished = False
        self.total_frames = total_frames
        self.training.total_steps = frames_to_steps(total_frames, frame_skip=self.spec.env.frame_skip)

    def save(self) -> str:
        """Save the current state, wait until it is on disk, and return its digest."""
        return self._saving.save()

    def run(self, guard: SignalGuard) -> str:
        """Train to the end and return the digest of the final state.

        `guard` defers signals already. Raise `InterruptedRunError` after a signal, when a checkpoint has been
        saved, and `HaltedError` if a failure gate trips.
        """
        self._stop_waiting_at_signals(guard)
        with self._saving.finished(), closing(self._light):
            self._train(guard, self.training.total_steps)
            digest = self._finish(guard)
            self.evaluations.forget_progress()
            return digest

    def run_until(self, steps: int) -> None:
        """Train until at least `steps` agent steps, without the final evaluation and its checkpoint."""
        with SignalGuard() as guard, self._saving.finished(), closing(self._light):
            self._stop_waiting_at_signals(guard)
            self._train(guard, steps)
            with self._stopping(guard) as stop:
                self._light.settle(stop)
            self._stop_if_interrupted(guard)

    def notice(self, kind: str, message: str, **data: object) -> None:
        """Report a notice to every sink."""
        clock = self.training.clock
        self.sinks.handle(
            Notice(kind=kind, step=clock.steps, env_frames=clock.env_frames, message=message, data=data)
        )

    def state_dict(self) -> StateDict:
        """Return the bookkeeping for a resume, which is not part of the state digest."""
        return {
            "light": self._light.state_dict(),
            "full": self._full.state_dict(),
            "replay_log": self._replay_log.state_dict(),
            "game": self.spec.game,
            "elapsed_seconds": self.elapsed_seconds,
            "total_frames": self.total_frames,
            "finished": self.finished,
            "tables": self.tables.state_dict(),
            "files": self._directory.file_records(),
            "recent_batch": self.training.recent.state_dict(),
            **self.evaluations.state_dict(),
            "watch": self.health.state_dict(),
            "inspected": self._saving.inspected,
            KEY: torch.get_num_threads(),
        }

    def load_state_dict(self, state: StateDict) -> None:
        """Load the bookkeeping of a checkpoint, and remove the rows written after it."""
        self._light.load_state_dict(state["light"])
        self._full.load_state_dict(state["full"])
        self._replay_log.load_state_dict(state["replay_log"])
        self._elapsed_before_seconds = state["elapsed_seconds"]
        self._began = time.monotonic()
        self.extend(state["total_frames"])
        self.finished = state["finished"]
        self.tables.load_state_dict(state["tables"])
        self.evaluations.load_state_dict(state)
        self.health.load_state_dict(state["watch"])
        self._saving.resume(state.get("inspected", []))
        # its indices are invalid in a replay that is filled again
        recent = state.get("recent_batch") if self.spec.checkpoint.replay else None
        self.training.recent.load_state_dict(recent)

    def _stop_waiting_at_signals(self, guard: SignalGuard) -> None:
        """After a signal, wait only seconds for workers that do not answer, and not for videos."""
        self.training.envs.stop_waiting_when(lambda: guard.received is not None)
        self.videos.stop_waiting_when(lambda: guard.received is not None)

    def _train(self, guard: SignalGuard, steps: int) -> None:
        clock = self.training.clock
        self._throughput.begin(env_frames=clock.env_frames, updates=clock.updates)
        self._between_iterations(guard)
        iterations = self.training.iterations()
        while clock.steps < steps and (iteration := next(iterations, None)) is not None:
            self.health.poll()
            self._report_recycled()
            for kind, message, data in self.training.notices():
                self.notice(kind, message, **data)
            for row in self.training.rows(iteration):
                self._report(row)
            for row in self._replay_log.rows():
                self._report(row)
            self._between_iterations(guard)

    def _report_recycled(self) -> None:
        """Report the dormant units that were found since the last iteration."""
        while self.training.recycled:
            found = self.training.recycled.pop(0)
            message = f"{found.dormant} of {found.units} units were dormant after update {found.updates:,}"
            self.notice("redo", message, **asdict(found))

    def _between_iterations(self, guard: SignalGuard) -> None:
        clock = self.training.clock
        if clock.steps >= self.training.total_steps:
            return
        with self.training.stopwatch.paused():
            self._saving.poll()
            self._light.poll()
            if self._full.is_due(clock.env_frames):
                self._saving.save_before_evaluation()
                score = self._evaluate("full", guard)
                self._mark_evaluated()
                self._saving.begin(score, self.evaluations.score_protocol)
            elif self._light.is_due(clock.env_frames):
                self._begin_light(guard)
            self._stop_if_interrupted(guard)
            self._saving.begin_if_due()

    def _mark_evaluated(self) -> None:
        for every in (self._light, self._full):
            every.mark(self.training.clock.env_frames)

    def _begin_light(self, guard: SignalGuard) -> None:
        self.health.check_updates()
        with self._stopping(guard) as stop:
            self._light.begin(stop)

    def _finish(self, guard: SignalGuard) -> str:
        self._saving.wait()
        self._stop_if_interrupted(guard)
        if self.finished:  # but ended before its summary was written
            return self._saving.save()
        self._saving.save_before_evaluation()
        score = self._evaluate("final", guard)
        self._mark_evaluated()  # or a run that is extended would play it again
        self.finished = True
        return self._saving.save(score, self.evaluations.score_protocol)

    def _evaluate(self, kind: str, guard: SignalGuard) -> EvaluationScore:
        """Play an evaluation, once the light one is in the log; if it is interrupted, its games are saved."""
        self.health.check_updates()
        with self._stopping(guard) as stop:
            self._light.settle(stop)
            return self.evaluations.play(kind, stop)

    @contextmanager
    def _stopping(self, guard: SignalGuard) -> Iterator[Callable[[], bool]]:
        """Yield whether a signal stops an evaluation; if one has, save a checkpoint and end the run."""
        try:
            yield lambda: guard.received is not None
        except StoppedError:
            self._stop_if_interrupted(guard)
            raise

    def _stop_if_interrupted(self, guard: SignalGuard) -> None:
        if guard.received is None:
            return
        self._saving.save()
        error = InterruptedRunError(guard.received)
        self.notice("interrupted", str(error))
        raise error

    def _report(self, row: Row) -> None:
        self.sinks.handle(row)
        if row.table == "update_log":
            throughput = self._throughput.row(row, elapsed_seconds=self.elapsed_seconds)
            self.sinks.handle(throughput)
            self.health.check_period(throughput)
            for kind, message, data in self.training.period_notices(self._throughput.seconds):
                self.notice(kind, message, **data)
            self.videos.poll()
        elif row.table == "replay_log":
            self.health.check_replay(row)
            for report in self._reports:
                self.sinks.handle(report.row(row))
