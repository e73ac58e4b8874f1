"""Save the state of a session: decide when a checkpoint is due, save it and report the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from atari_dqn.clock import Clock, Every
from atari_dqn.errors import DiskFullError, UserError
from atari_dqn.run.checkpoint.store import CheckpointStore, Saved
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.spec import schema
from atari_dqn.telemetry.events import Notify
from atari_dqn.train.health import HealthMonitor
from atari_dqn.types import StateDict


class Cadence:
    """Decides when a periodic checkpoint is due: by frames or by seconds, whichever comes first.

    0 disables a period. Periods in frames end at multiples of `period_frames`, wherever the run was resumed.
    A period in seconds begins with a checkpoint of this process, or with the process itself.
    """

    def __init__(
        self, *, period_frames: int, period_seconds: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._frames = Every(period=period_frames) if period_frames else None
        self._period_seconds, self._now = period_seconds, now
        self._marked = now()

    def is_due(self, env_frames: int) -> bool:
        """Return whether one of the periods has passed since the last call of `mark`."""
        if self._frames is not None and self._frames.is_due(env_frames):
            return True
        return 0 < self._period_seconds <= self._now() - self._marked

    def mark(self, env_frames: int) -> None:
        """Restart both periods: a checkpoint was begun at this frame, or the run was resumed at it."""
        self._marked = self._now()
        if self._frames is not None:
            self._frames.mark(env_frames)


class Saving:
    """Saves the state of a session in the checkpoint store, one checkpoint at a time."""

    def __init__(
        self,
        spec: schema.Checkpoint,
        clock: Clock,
        *,
        checkpoints: CheckpointStore,
        health: HealthMonitor,
        notify: Notify,
        training: Callable[[], StateDict],
        bookkeeping: Callable[[], StateDict],
    ) -> None:
        self._spec, self._checkpoints, self._health, self._notify = spec, checkpoints, health, notify
        self._clock, self._training, self._bookkeeping = clock, training, bookkeeping
        self._cadence = Cadence(period_frames=spec.period_frames, period_seconds=spec.period_seconds)
        self._saved_at: tuple[int, int] | None = None
        """Steps and updates of the state in the newest checkpoint; None before the first."""
        self._begun_at: tuple[int, int] | None = None
        """The same of the checkpoint that was begun last."""
        self.inspected: list[int] = []
        """Steps of the checkpoints that a failure gate marked for inspection."""

    def resume(self, inspected: list[int]) -> None:
        """Restore the inspected steps and restart the periods; the clock must have been restored before."""
        self.inspected = [*inspected]
        self._cadence.mark(self._clock.env_frames)
        self._saved_at = self._clock.steps, self._clock.updates

    def begin_if_due(self) -> None:
        """Start to save a checkpoint if a period has passed."""
        if self._cadence.is_due(self._clock.env_frames):
            self.begin()

    def save(self, score: EvaluationScore | None = None, protocol: str | None = None) -> str:
        """Save a checkpoint, wait until it is written, and return the digest of its state."""
        self.begin(score, protocol)
        saved = self._checkpoints.finish()
        assert saved is not None
        self._report_saved(saved)
        return saved.state_digest

    def begin(self, score: EvaluationScore | None = None, protocol: str | None = None) -> None:
        """Start to save a checkpoint. `score`: of the full evaluation at this step, if any."""
        self._health.check_updates()
        inspect = score is not None and self._health.check_evaluation(score.mean_return)
        if inspect:
            self.inspected.append(self._clock.steps)
        self.wait()
        self._cadence.mark(self._clock.env_frames)
        now = self._clock.steps, self._clock.updates
        is_saved = self._checkpoints.begin(
            step=self._clock.steps,
            training=self._training(),
            bookkeeping=self._bookkeeping(),
            eval_score=score.mean_return if score else None,
            protocol=protocol if score else None,
            tag="inspect" if inspect else None,
            replaces=self._saved_at != now,  # free-running actors: updates without a new step
        )
        self._begun_at = now if is_saved else self._saved_at
        if not is_saved and self._saved_at is not None:
            lost = now[1] - self._saved_at[1]
            self._notify(
                "updates lost",
                f"the checkpoint of step {self._clock.steps:,} keeps its state, which has a score or a mark; "
                f"{lost} updates since are not saved",
            )

    def poll(self) -> None:
        """Report the checkpoint that was being written, if it is complete."""
        self._settle(self._checkpoints.poll)

    def wait(self) -> None:
        """Wait for the checkpoint that is being written, if any, and report it."""
        self._settle(self._checkpoints.finish)

    def save_before_evaluation(self) -> None:
        """Save a checkpoint, so that no training is lost if the evaluation, which may take an hour, fails."""
        self.begin()
        self.wait()

    @contextmanager
    def finished(self) -> Iterator[None]:
        """Finish the checkpoint being written if the block fails; cancel it if the process must exit."""
        try:
            yield
        except Exception:
            with suppress(UserError):
                self._report_saved(self._checkpoints.finish())
            raise
        except BaseException:
            self._checkpoints.cancel()
            raise

    def _settle(self, outcome: Callable[[], Saved | None]) -> None:
        """Report the checkpoint that `outcome` returns; a full disk ends the run only if the spec says so."""
        try:
            self._report_saved(outcome())
        except DiskFullError as error:
            if self._spec.on_full_disk == "stop":
                raise
            self._notify("checkpoint failed", f"{error}; training continues")

    def _report_saved(self, saved: Saved | None) -> None:
        if saved is not None:
            self._saved_at = self._begun_at
            self._notify("checkpoint", f"saved step {saved.step:,}", state_digest=saved.state_digest)
            for path in saved.leftovers:
                self._notify(
                    "not removed", f"{path}: an earlier checkpoint, whose files take space until they can be"
                )
