"""Saving a session: taking snapshots of its state, and reporting what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from atari_dqn.checkpoint.store import CheckpointStore, Saved
from atari_dqn.errors import DiskFullError, UserError
from atari_dqn.scores import EvaluationScore
from atari_dqn.spec import schema
from atari_dqn.train.watch import Watch
from atari_dqn.types import StateDict


class Report(Protocol):
    """Takes a notice of something that happened once."""

    def __call__(self, kind: str, message: str, **data: object) -> None:
        """Report it."""
        ...


class Saving:
    """Saves the states of a session into its store, one at a time."""

    def __init__(
        self,
        spec: schema.Checkpoint,
        *,
        checkpoints: CheckpointStore,
        watch: Watch,
        report: Report,
        training: Callable[[], StateDict],
        bookkeeping: Callable[[], StateDict],
    ) -> None:
        self._spec, self._checkpoints, self._watch, self._report = spec, checkpoints, watch, report
        self._training, self._bookkeeping = training, bookkeeping

    def save(self, *, step: int, score: EvaluationScore | None = None, protocol: str | None = None) -> str:
        """Save a checkpoint, wait for it, and return its digest."""
        self.begin(step=step, score=score, protocol=protocol)
        saved = self._checkpoints.finish()
        assert saved is not None
        self._report_saved(saved)
        return saved.state_digest

    def begin(self, *, step: int, score: EvaluationScore | None = None, protocol: str | None = None) -> None:
        """Begin to save a checkpoint; `score` is of the full evaluation at this step, under `protocol`."""
        self._watch.check()
        inspect = score is not None and self._watch.evaluated(score.mean_return)
        self.wait()
        self._checkpoints.begin(
            step=step,
            training=self._training(),
            bookkeeping=self._bookkeeping(),
            eval_score=score.mean_return if score else None,
            protocol=protocol if score else None,
            tag="inspect" if inspect else None,
        )

    def poll(self) -> None:
        """Report a periodic checkpoint that has been written, if there is one."""
        self._settle(self._checkpoints.poll)

    def wait(self) -> None:
        """Wait for a periodic checkpoint that is being written, and report it."""
        self._settle(self._checkpoints.finish)

    @contextmanager
    def finished(self) -> Iterator[None]:
        """Let a checkpoint that is being written come to its end, unless the process has to end at once."""
        try:
            yield
        except Exception:
            with suppress(UserError):
                self._report_saved(self._checkpoints.finish())
            raise
        except BaseException:
            self._checkpoints.give_up()
            raise

    def _settle(self, outcome: Callable[[], Saved | None]) -> None:
        """Report the outcome of a periodic checkpoint; a full disk ends the run where the spec says so."""
        try:
            self._report_saved(outcome())
        except DiskFullError as error:
            if self._spec.on_full_disk == "stop":
                raise
            self._report("checkpoint failed", f"{error}; training goes on")

    def _report_saved(self, saved: Saved | None) -> None:
        if saved is not None:
            self._report("checkpoint", f"saved step {saved.step:,}", state_digest=saved.state_digest)
