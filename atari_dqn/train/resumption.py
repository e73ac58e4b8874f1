"""Find the point from which a run resumes, and restore its training from there."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import torch

from atari_dqn.actors.inline import InlineActors
from atari_dqn.envs.worker_handle import WorkerFailedError
from atari_dqn.errors import DamagedError, InfrastructureError, UserError, is_of_memory
from atari_dqn.run.added_parts import explained_by_packages
from atari_dqn.run.archive.archive import refuse_imported
from atari_dqn.run.checkpoint.manifest import verify
from atari_dqn.run.checkpoint.names import refuse_missing_manifest
from atari_dqn.run.checkpoint.reconcile import (
    checkpoint_directories,
    later_agents,
    reconcile,
    refuse_wrong_place,
)
from atari_dqn.run.checkpoint.rewind import named_checkpoint, refuse_empty_store
from atari_dqn.run.checkpoint.store import CheckpointStore, read_state
from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import MakeActors, assemble, local_actors
from atari_dqn.train.learning import Learning
from atari_dqn.train.resume_point import (
    DamagedLogError,
    ResumePoint,
    beginning_of,
    point_at,
    recorded_spec,
    resume_command,
)
from atari_dqn.types import StateDict

_LATEST, _SET_ASIDE = "latest", "--set-aside-damaged-logs"


def resume_point(
    run: RunDirectory, checkpoint: str | None = None, *, set_aside_logs: bool = False
) -> ResumePoint:
    """Return the point from which a run resumes, after checking every file outside the checkpoint.

    `checkpoint`: the name of a checkpoint; `latest` for the newest; None for that too, or for the beginning
    if there is none. With `set_aside_logs` the point lists damaged logs, which are an error otherwise. Raise
    `UserError` for an unknown name, an imported archive, and `set_aside_logs` without a damaged log. A
    `DamagedError` names the damaged file and a remedy.
    """
    refuse_imported(run.path)
    point = _find_point(run, checkpoint, set_aside_logs)
    if set_aside_logs and not point.damaged_logs:
        raise UserError(f"{run.path}: no log is damaged; resume without --set-aside-damaged-logs")
    return point


def _find_point(run: RunDirectory, checkpoint: str | None, set_aside_logs: bool) -> ResumePoint:
    store = CheckpointStore(run.checkpoints)
    with suggesting_intact_checkpoint(run):
        if checkpoint not in (None, _LATEST):
            return point_at(run, named_checkpoint(store, checkpoint), set_aside_logs=set_aside_logs)
        found = reconcile(store.folder)
        if found.lost is not None:
            _refuse_lost_checkpoint(found.lost)
        if found.entries:
            # the link may be one checkpoint behind after a crash
            return point_at(run, store.folder / found.entries[-1].path, set_aside_logs=set_aside_logs)
        refuse_empty_store(run)
        if checkpoint is not None:
            raise UserError(f"{run.path}: no checkpoint {checkpoint!r}; none is saved yet")
        return beginning_of(run)


def _refuse_lost_checkpoint(checkpoint: Path) -> NoReturn:
    """Raise `DamagedError` with what is wrong with a checkpoint."""
    refuse_missing_manifest(checkpoint)
    refuse_wrong_place(checkpoint, verify(checkpoint)["step"])
    raise DamagedError(f"{checkpoint}: is not a checkpoint of this run")


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
    return is_of_memory(error)


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
    newest_first = [*reversed(checkpoint_directories(run.checkpoints))]
    if isinstance(error, DamagedLogError) and _newest_loadable(run, newest_first[:1], set_aside_logs=True):
        option = f"{resume_command(run)} {_SET_ASIDE}"
        remedy = f"`{option}` moves it to {run.set_aside.name}/ and continues with a new one"
        older = _newest_loadable(run, newest_first, set_aside_logs=False)
        return f"{remedy}\n{_way_back(older)}" if older else remedy
    older = _newest_loadable(run, newest_first, set_aside_logs=True)
    if older is None:
        return "no checkpoint of this run is intact; restore the file, or start a new run"
    return _way_back(older)


def _way_back(point: ResumePoint) -> str:
    """Say how to resume from the newest intact checkpoint."""
    options = f" {_SET_ASIDE}" if point.damaged_logs else ""
    command = f"{resume_command(point.run)} --checkpoint {point.name}{options}"
    later = ", ".join(later_agents(point.run.checkpoints, point.step))
    if not later:
        return f"the newest intact checkpoint: `{command}`"
    return (
        f"restore it; or `{command} --discard-later` goes back to the newest intact checkpoint "
        f"and deletes {later}: copy the run first to keep its agent"
    )


def _newest_loadable(
    run: RunDirectory, newest_first: Iterable[Path], *, set_aside_logs: bool
) -> ResumePoint | None:
    """Return the point of the first checkpoint from which the run can resume; None if there is none."""
    points = (_loadable(run, checkpoint, set_aside_logs=set_aside_logs) for checkpoint in newest_first)
    return next((point for point in points if point is not None), None)


def _loadable(run: RunDirectory, checkpoint: Path, *, set_aside_logs: bool) -> ResumePoint | None:
    """Return the point of a checkpoint; None if the run cannot resume from it, by all checks of a resume."""
    try:
        point = point_at(run, checkpoint, set_aside_logs=set_aside_logs)
        spec = _cheap_to_assemble(recorded_spec(run).spec)
        with closing(assemble(spec, torch.device("cpu"), InlineActors)) as training:
            _load(training, checkpoint, point)
    except (UserError, RuntimeError):  # damage, or memory that is not there
        return None
    return point


def _cheap_to_assemble(spec: Spec) -> Spec:
    """Return a spec with the same training state that is cheap to assemble on any machine."""
    learner = replace(spec.learner, compile=False, precision="fp32")
    replay = replace(spec.replay, device="cpu")
    return replace(spec, learner=learner, replay=replay, system=replace(spec.system, workers=0))


def _with_recorded_replay_device(spec: Spec, run: RunDirectory, device: torch.device) -> Spec:
    """Return the spec with the replay on the recorded device, which `auto` might now resolve differently."""
    on_gpu = device.type == "cuda" and run.recorded("replay_device") == "cuda"
    return replace(spec, replay=replace(spec.replay, device="cuda" if on_gpu else "cpu"))
