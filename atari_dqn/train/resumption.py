"""Determine the point from which a run resumes, check its files, and restore the training."""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import torch

from atari_dqn.actors.inline import InlineActors
from atari_dqn.envs.worker_handle import WorkerFailedError
from atari_dqn.errors import DamagedError, InfrastructureError, UserError
from atari_dqn.files.atomic import is_file
from atari_dqn.run.added_parts import explained_by_packages
from atari_dqn.run.archive.archive import refuse_imported
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.manifest import read_manifest, verify
from atari_dqn.run.checkpoint.names import MANIFEST, named_step
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories, reconcile, refuse_wrong_place
from atari_dqn.run.checkpoint.rewind import later_agents, named_checkpoint, refuse_empty_store
from atari_dqn.run.checkpoint.store import CheckpointStore, read_state
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import KEY, threads_at
from atari_dqn.spec.loader import ResolvedSpec, load_resolved
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import MakeActors, assemble, local_actors
from atari_dqn.train.learning import Learning
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
    def threads(self) -> int:
        """The number of torch's threads with which the run continues."""
        return threads_at(self.run, self.step, saved=self.bookkeeping.get(KEY))

    def budget(self, total_frames: int | None) -> int:
        """Return the new budget in emulator frames: `total_frames` if given, or else the current one.

        Raise `UserError` for a finished run without `total_frames`, and for a budget that is not larger.
        """
        finished = self.bookkeeping.get("finished") and self.run.summary.exists()
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
        return total_frames or self.total_frames


def resume_point(
    run: RunDirectory, checkpoint: str | None = None, *, set_aside_logs: bool = False
) -> ResumePoint:
    """Return the point from which a run resumes, after checking every file outside the checkpoint.

    `checkpoint`: the name of a checkpoint; None for the latest, or for the beginning if there is none. With
    `set_aside_logs` the point lists damaged logs, which are an error otherwise. Raise `UserError` for an
    unknown name, an imported archive, and `set_aside_logs` without a damaged log. A `DamagedError` names
    the damaged file and a remedy.
    """
    refuse_imported(run.path)
    point = _find_point(run, checkpoint, set_aside_logs)
    if set_aside_logs and not point.damaged_logs:
        raise UserError(f"{run.path}: no log is damaged; resume without --set-aside-damaged-logs")
    return point


def _find_point(run: RunDirectory, checkpoint: str | None, set_aside_logs: bool) -> ResumePoint:
    store = CheckpointStore(run.checkpoints)
    with suggesting_intact_checkpoint(run):
        if checkpoint is not None:
            return _point_at(run, named_checkpoint(store, checkpoint), set_aside_logs=set_aside_logs)
        found = reconcile(store.folder)
        if found.lost is not None:
            _refuse_lost_checkpoint(found.lost)
        if found.entries:
            # the link may be one checkpoint behind after a crash
            return _point_at(run, store.folder / found.entries[-1].path, set_aside_logs=set_aside_logs)
        refuse_empty_store(run)
        return beginning_of(run)


def beginning_of(run: RunDirectory) -> ResumePoint:
    """Return the point before the first step of a run."""
    return ResumePoint(run=run, checkpoint=None, step=0, bookkeeping={})


def _refuse_lost_checkpoint(checkpoint: Path) -> NoReturn:
    """Raise `DamagedError` with what is wrong with a checkpoint."""
    if not is_file(checkpoint / MANIFEST):
        raise DamagedError(f"{checkpoint / MANIFEST}: missing")
    refuse_wrong_place(checkpoint, verify(checkpoint)["step"])
    raise DamagedError(f"{checkpoint}: is not a checkpoint of this run")


def _point_at(run: RunDirectory, checkpoint: Path, *, set_aside_logs: bool = False) -> ResumePoint:
    if not is_file(checkpoint / MANIFEST):
        raise DamagedError(f"{checkpoint / MANIFEST}: missing")
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


@contextmanager
def reopened(
    point: ResumePoint,
    device: torch.device,
    *,
    threads: int | None = None,
    make_actors: MakeActors = local_actors,
) -> Iterator[Learning]:
    """Restore the training at a point without changing anything on disk, and close it after the block.

    `threads`: the number of torch's threads, by default that of the run at this point. Raise `DamagedError`
    with the damaged file and an intact checkpoint.
    """
    spec = _with_recorded_replay_device(recorded_spec(point.run).spec, point.run, device)
    spec = replace(spec, learner=replace(spec.learner, threads=threads or point.threads))
    with suggesting_intact_checkpoint(point.run), ExitStack() as stack:
        training = stack.enter_context(closing(assemble(spec, device, make_actors)))
        if point.checkpoint is None:
            training.begin()
        else:
            _load(training, point.checkpoint, point)
        loaded = stack.pop_all()
    with loaded:
        yield training


def _load(training: Learning, checkpoint: Path, point: ResumePoint) -> None:
    bookkeeping = verify(checkpoint)["bookkeeping"]
    with explained_by_packages(recorded_spec(point.run).spec, point.run.read_provenance()):
        _restore_state(training, checkpoint, point.step, bookkeeping)


def _restore_state(training: Learning, checkpoint: Path, step: int, bookkeeping: StateDict) -> None:
    """Restore a training from a checkpoint whose files have been verified."""
    state = read_state(checkpoint, like=training.state_dict())
    try:
        training.load_state_dict(state)
        training.recent.check_state_dict(bookkeeping.get("recent_batch"))
        if training.clock.steps != step:
            raise ValueError(f"clock.steps: found {training.clock.steps}, expected {step}")
    except (LookupError, ArithmeticError, ValueError, TypeError, RuntimeError) as error:
        if _is_of_the_machine(error):
            raise
        cause = next(reversed(str(error).splitlines()), type(error).__name__)
        raise DamagedError(f"{checkpoint}: is not a state of this run's spec: {cause}") from error


def _is_of_the_machine(error: Exception) -> bool:
    """Return whether an error is one of memory or of a process that ended, not of a checkpoint."""
    if isinstance(error, InfrastructureError):
        return not isinstance(error, WorkerFailedError)
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def refuse_to_discard(store: CheckpointStore, point: ResumePoint) -> None:
    """Raise `UserError` if resuming from a point would delete later agents."""
    later = later_agents(store.folder, point.step)
    if later:
        raise UserError(
            f"{', '.join(later)} would be lost, and so would the log rows after {point.name}; "
            "add --discard-later to go back nevertheless, or copy the run directory first"
        )


@contextmanager
def suggesting_intact_checkpoint(run: RunDirectory) -> Iterator[None]:
    """Add to a `DamagedError` of the block the command to resume from the newest intact checkpoint."""
    try:
        yield
    except DamagedError as error:
        # free the partially loaded state before other checkpoints are loaded
        traceback.clear_frames(error.__traceback__)
        raise DamagedError(f"{error}\n{_remedy(run, error)}") from error


def _remedy(run: RunDirectory, error: DamagedError) -> str:
    older = _older_checkpoint(run)
    if isinstance(error, DamagedLogError):
        option = f"{resume_command(run)} --set-aside-damaged-logs"
        remedy = f"`{option}` moves it to {run.set_aside.name}/ and continues with a new one"
        return f"{remedy}\n{older}" if older else remedy
    return older or "no checkpoint of this run is intact; restore the file, or start a new run"


def _older_checkpoint(run: RunDirectory) -> str:
    """Return the command to resume from the newest intact checkpoint; empty if there is none."""
    for checkpoint in reversed(checkpoint_directories(run.checkpoints)):
        if _is_loadable(run, checkpoint):
            command = f"{resume_command(run)} --checkpoint {checkpoint.name}"
            later = ", ".join(later_agents(run.checkpoints, named_step(checkpoint.name)))
            if not later:
                return f"the newest intact checkpoint: `{command}`"
            return (
                f"restore it; or `{command} --discard-later` goes back to the newest intact checkpoint "
                f"and deletes {later}: copy the run first to keep its agent"
            )
    return ""


def _is_loadable(run: RunDirectory, checkpoint: Path) -> bool:
    """Return whether a run can resume from a checkpoint, with all checks of a resume."""
    try:
        point = _point_at(run, checkpoint)
        spec = _cheap_to_assemble(recorded_spec(run).spec)
        with closing(assemble(spec, torch.device("cpu"), InlineActors)) as training:
            _load(training, checkpoint, point)
    except (UserError, RuntimeError):  # damage, or memory that is not there
        return False
    return True


def _cheap_to_assemble(spec: Spec) -> Spec:
    """Return a spec with the same training state that is cheap to assemble on any machine."""
    learner = replace(spec.learner, compile=False, precision="fp32")
    replay = replace(spec.replay, device="cpu")
    return replace(spec, learner=learner, replay=replay, system=replace(spec.system, workers=0))


def resume_command(run: RunDirectory) -> str:
    """Return the command that resumes a run."""
    return f"dqn resume {shlex.quote(str(run.path))}"


def recorded_spec(run: RunDirectory) -> ResolvedSpec:
    """Load the spec of a run with its recorded name."""
    return replace(load_resolved(run.spec, run.read_provenance()), name=run.recorded("name"))


def _with_recorded_replay_device(spec: Spec, run: RunDirectory, device: torch.device) -> Spec:
    """Return the spec with the replay on the recorded device, which `auto` might now resolve differently."""
    on_gpu = device.type == "cuda" and run.recorded("replay_device") == "cuda"
    return replace(spec, replay=replace(spec.replay, device="cuda" if on_gpu else "cpu"))
