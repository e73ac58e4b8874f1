"""The point from which a run resumes: a checkpoint, or the beginning of the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from atari_dqn.clock import steps_to_frames
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.manifest import read_manifest
from atari_dqn.run.checkpoint.names import MANIFEST, refuse_missing_manifest
from atari_dqn.run.checkpoint.reconcile import refuse_wrong_place
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import KEY, threads_at
from atari_dqn.spec.loader import ResolvedSpec, load_resolved
from atari_dqn.types import StateDict


@dataclass(frozen=True, kw_only=True)
class ResumePoint:
    """The point from which a run resumes: a checkpoint, or the beginning if there is none."""

    run: RunDirectory
    checkpoint: Path | None
    step: int
    bookkeeping: StateDict
    damaged_logs: tuple[str, ...] = ()
    """Names of the damaged logs that are to be set aside."""

    @property
    def name(self) -> str:
        """The name of the checkpoint, or `the beginning`."""
        return self.checkpoint.name if self.checkpoint else "the beginning"

    @property
    def total_frames(self) -> int:
        """The budget at this point in emulator frames."""
        if self.checkpoint is None:
            return recorded_spec(self.run).spec.training.total_frames
        return int(self.bookkeeping["total_frames"])

    @property
    def played_frames(self) -> int:
        """Emulator frames up to this point, which may be more than the budget: iterations are whole."""
        return steps_to_frames(self.step, frame_skip=recorded_spec(self.run).spec.env.frame_skip)

    @property
    def threads(self) -> int:
        """The number of torch's threads with which the run continues."""
        return threads_at(self.run, self.step, saved=self.bookkeeping.get(KEY))

    def budget(self, total_frames: int | None) -> int:
        """Return the new budget in emulator frames: `total_frames` if given, or else the current one.

        Raise `UserError` for a finished run without `total_frames`, unless its damaged logs are set aside,
        and for a budget that is not larger or has been played.
        """
        finished = self.bookkeeping.get("finished") and self.run.summary.exists() and not self.damaged_logs
        if total_frames is None and finished:
            raise UserError(
                f"{self.run.path} is complete at {self.total_frames:,} frames; "
                f"`{resume_command(self.run)} --frames N` continues to frame N"
            )
        if total_frames is not None and total_frames <= self.total_frames:
            raise UserError(
                f"--frames {total_frames:,}: the budget is {self.total_frames:,} frames already; "
                "expected more"
            )
        if total_frames is not None and total_frames <= self.played_frames:
            raise UserError(
                f"--frames {total_frames:,}: the run has played {self.played_frames:,} frames; expected more"
            )
        return total_frames or self.total_frames


def beginning_of(run: RunDirectory) -> ResumePoint:
    """Return the point before the first step of a run."""
    return ResumePoint(run=run, checkpoint=None, step=0, bookkeeping={})


def point_at(run: RunDirectory, checkpoint: Path, *, set_aside_logs: bool = False) -> ResumePoint:
    """Return the point of a checkpoint, after checking its manifest and every file outside it.

    `set_aside_logs`: as in `resumption.resume_point`. Raise `DamagedError` with the damaged file.
    """
    refuse_missing_manifest(checkpoint)
    manifest = read_manifest(checkpoint)
    check_bookkeeping(checkpoint / MANIFEST, manifest["bookkeeping"])
    refuse_wrong_place(checkpoint, manifest["step"])
    damaged = _damaged_logs(run, manifest["bookkeeping"].get("files", {}), set_aside_logs=set_aside_logs)
    return ResumePoint(
        run=run,
        checkpoint=checkpoint,
        step=manifest["step"],
        bookkeeping=manifest["bookkeeping"],
        damaged_logs=tuple(damaged),
    )


class DamagedLogError(DamagedError):
    """A log differs from its record in a checkpoint, which may itself be intact."""


def check_records(run: RunDirectory, records: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise a `DamagedError` for the first file outside the checkpoints that does not match its record."""
    tuple(_damaged_logs(run, records, set_aside_logs=False))


def _damaged_logs(
    run: RunDirectory, records: Mapping[str, Mapping[str, Any]], *, set_aside_logs: bool
) -> Iterator[str]:
    """Yield the damaged logs to be set aside; raise `DamagedError` for any other damaged file."""
    for name, problem in run.problems(records):
        message = f"{run.path / name}: {problem}"
        if not run.is_log(name):
            raise DamagedError(message)
        if not set_aside_logs:
            raise DamagedLogError(message)
        yield name


def resume_command(run: RunDirectory) -> str:
    """Return the command that resumes a run."""
    return f"dqn resume {shlex.quote(str(run.path))}"


def recorded_spec(run: RunDirectory) -> ResolvedSpec:
    """Load the spec of a run with its recorded name, and its deviations from the track as it was then."""
    record = run.read_provenance()
    spec = replace(load_resolved(run.spec, record), name=run.recorded("name"))
    track = record.get("track")
    return spec if track is None else replace(spec, deviations=tuple(track.get("deviations", ())))
