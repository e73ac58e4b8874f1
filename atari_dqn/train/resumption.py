"""Where a run goes on: from which checkpoint, and whether its files are good."""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import torch

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import is_file
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories, is_whole, reconcile
from atari_dqn.run.checkpoint.rewind import later_checkpoints, named_checkpoint, refuse_wrong_place
from atari_dqn.run.checkpoint.store import MANIFEST, CheckpointStore, load_checkpoint, read_manifest, verify
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import threads_at
from atari_dqn.spec.loader import ResolvedSpec, load_resolved
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble
from atari_dqn.train.training import Training
from atari_dqn.types import StateDict


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where a run goes on: one of its checkpoints, or its beginning if it ended before it saved one."""

    run: RunDirectory
    checkpoint: Path | None
    step: int
    bookkeeping: StateDict
    damaged_logs: tuple[str, ...] = ()
    """Names of the logs that are not what the checkpoint recorded, where they are to be set aside."""

    @property
    def name(self) -> str:
        """The checkpoint's name, for people."""
        return self.checkpoint.name if self.checkpoint else "the beginning"

    @property
    def total_frames(self) -> int:
        """The budget the run has at this point."""
        if self.checkpoint is None:
            return recorded_spec(self.run).spec.training.total_frames
        return int(self.bookkeeping["total_frames"])

    def budget(self, total_frames: int | None) -> int:
        """Return the frames to go to, `total_frames` if given.

        `UserError` for a complete run that is not extended, and for a budget that is not larger.
        """
        finished = self.bookkeeping.get("finished") and self.run.summary.exists()
        if total_frames is None and finished:
            raise UserError(
                f"{self.run.path} is complete at {self.total_frames:,} frames; "
                f"`{resume_command(self.run)} --frames N` goes on to frame N"
            )
        if total_frames is not None and total_frames <= self.total_frames:
            raise UserError(
                f"--frames {total_frames:,}: the budget is {self.total_frames:,} frames already; "
                "expected more"
            )
        return total_frames or self.total_frames


def point_of(run: RunDirectory, checkpoint: str | None = None, *, set_aside_logs: bool = False) -> Point:
    """Return where a run goes on, every file beside the checkpoint checked.

    `checkpoint` is a name; None is the latest, or the run's beginning. Logs that are damaged are refused, or
    with `set_aside_logs` named by the point. `UserError` for an unknown name, and where no log is to be set
    aside; `DamagedError` names the file, and a way on.
    """
    point = _point_of(run, checkpoint, set_aside_logs)
    if set_aside_logs and not point.damaged_logs:
        raise UserError(f"{run.path}: no log is damaged; resume without --set-aside-damaged-logs")
    return point


def _point_of(run: RunDirectory, checkpoint: str | None, set_aside_logs: bool) -> Point:
    store = CheckpointStore(run.checkpoints)
    with offering_a_whole_one(run):
        if checkpoint is not None:
            return _point(run, named_checkpoint(store, checkpoint), set_aside_logs=set_aside_logs)
        found = reconcile(store.folder)
        if found.lost is not None:
            _refuse_lost_checkpoint(found.lost)
        if found.entries:
            # not the link, which a crash can leave behind the newest by one
            return _point(run, store.folder / found.entries[-1].path, set_aside_logs=set_aside_logs)
        _refuse_lost_checkpoints(run)
        return beginning_of(run)


def beginning_of(run: RunDirectory) -> Point:
    """Return the point before a run's first step."""
    return Point(run=run, checkpoint=None, step=0, bookkeeping={})


def _refuse_lost_checkpoint(checkpoint: Path) -> NoReturn:
    """Raise a `DamagedError` that says what is wrong with a checkpoint."""
    if not is_file(checkpoint / MANIFEST):
        raise DamagedError(f"{checkpoint / MANIFEST}: missing")
    refuse_wrong_place(checkpoint, verify(checkpoint)["step"])
    raise DamagedError(f"{checkpoint}: is no checkpoint of this run")


def _refuse_lost_checkpoints(run: RunDirectory) -> None:
    """Raise a `DamagedError` where the log tells of checkpoints: to begin again would cut the logs."""
    if is_file(run.events) and b'"kind": "checkpoint"' in run.events.read_bytes():
        raise DamagedError(f"{run.checkpoints}: empty, though {run.events.name} tells of checkpoints")


def _point(run: RunDirectory, checkpoint: Path, *, set_aside_logs: bool = False) -> Point:
    if not is_file(checkpoint / MANIFEST):
        raise DamagedError(f"{checkpoint / MANIFEST}: missing")
    manifest = read_manifest(checkpoint)
    check_bookkeeping(checkpoint / MANIFEST, manifest["bookkeeping"])
    refuse_wrong_place(checkpoint, manifest["step"])
    damaged = _damaged_logs(run, manifest["bookkeeping"].get("files", {}), set_aside_logs)
    return Point(
        run=run,
        checkpoint=checkpoint,
        step=manifest["step"],
        bookkeeping=manifest["bookkeeping"],
        damaged_logs=tuple(damaged),
    )


class DamagedLogError(DamagedError):
    """A log of a run is not what a checkpoint recorded; the checkpoint itself may be whole."""


def _damaged_logs(
    run: RunDirectory, records: Mapping[str, Mapping[str, Any]], set_aside_logs: bool
) -> Iterator[str]:
    """Yield the logs to be set aside; `DamagedError` for any other file that is not what was recorded."""
    for name, problem in run.problems(records):
        message = f"{run.path / name}: {problem}"
        if not run.is_log(name):
            raise DamagedError(message)
        if not set_aside_logs:
            raise DamagedLogError(message)
        yield name


@contextmanager
def reopened(point: Point, device: torch.device, *, threads: int | None = None) -> Iterator[Training]:
    """Yield the training as it was at a point; nothing on disk is changed.

    `threads`: the number of torch's threads to go on with; by default that with which the run did.
    `DamagedError` names the file that is not good, and a checkpoint that is whole.
    """
    torch.set_num_threads(threads or threads_at(point.run, point.step))
    spec = _where_it_was(recorded_spec(point.run).spec, point.run, device)
    with offering_a_whole_one(point.run), ExitStack() as stack:
        training = stack.enter_context(closing(assemble(spec, device)))
        if point.checkpoint is None:
            training.begin()
        else:
            _load(training, point.checkpoint, point.step)
        loaded = stack.pop_all()
    with loaded:
        yield training


def _load(training: Training, checkpoint: Path, step: int) -> None:
    state, bookkeeping = load_checkpoint(checkpoint, like=training.state_dict())
    try:
        training.load_state_dict(state)
        training.check_recent_state(bookkeeping.get("recent_batch"))
        if training.clock.steps != step:
            raise ValueError(f"clock.steps: found {training.clock.steps}, expected {step}")
    except torch.OutOfMemoryError:  # which is the machine's fault, and no checkpoint's
        raise
    except (LookupError, ArithmeticError, ValueError, TypeError, RuntimeError) as error:
        cause = next(reversed(str(error).splitlines()), type(error).__name__)
        raise DamagedError(f"{checkpoint}: is no state of this run's spec: {cause}") from error


def refuse_to_discard(store: CheckpointStore, point: Point) -> None:
    """Raise a `UserError` where going on from a point would lose later checkpoints that are whole."""
    whole = [path.name for path in later_checkpoints(store, point.step) if is_whole(path)]
    if whole:
        raise UserError(
            f"{', '.join(whole)} would be lost, with the log rows after {point.name}: they are later; "
            "add --discard-later to go back all the same, or copy the run directory first"
        )


@contextmanager
def offering_a_whole_one(run: RunDirectory) -> Iterator[None]:
    """Have a `DamagedError` of the block tell the newest checkpoint that is whole, and the command for it."""
    try:
        yield
    except DamagedError as error:
        # what was loaded in part would lie in memory twice while others are tried
        traceback.clear_frames(error.__traceback__)
        raise DamagedError(f"{error}\n{_way_on(run, error)}") from error


def _way_on(run: RunDirectory, error: DamagedError) -> str:
    older = _older_checkpoint(run)
    if isinstance(error, DamagedLogError):
        option = f"{resume_command(run)} --set-aside-damaged-logs"
        way = f"`{option}` keeps it in {run.set_aside.name}/ and goes on with a new one"
        return f"{way}\n{older}" if older else way
    return older or "no checkpoint of this run is whole; restore the file, or begin another run"


def _older_checkpoint(run: RunDirectory) -> str:
    """Return the command that goes on from the newest checkpoint with whole files; empty if there is none."""
    for checkpoint in reversed(checkpoint_directories(run.checkpoints)):
        if _is_loadable(run, checkpoint):
            command = f"{resume_command(run)} --checkpoint {checkpoint.name}"
            return f"the newest checkpoint that is whole: `{command}`"
    return ""


def _is_loadable(run: RunDirectory, checkpoint: Path) -> bool:
    """Return whether a run can go on from a checkpoint, by all that a resume checks."""
    try:
        point = _point(run, checkpoint)
        with closing(assemble(_quickly_assembled(recorded_spec(run).spec), torch.device("cpu"))) as training:
            _load(training, checkpoint, point.step)
    except (DamagedError, UserError):
        return False
    return True


def _quickly_assembled(spec: Spec) -> Spec:
    """Return a spec whose training has the same state, and takes the least to assemble on any machine."""
    learner = replace(spec.learner, compile=False, precision="fp32")
    replay = replace(spec.replay, device="cpu")
    return replace(spec, learner=learner, replay=replay, system=replace(spec.system, workers=0))


def resume_command(run: RunDirectory) -> str:
    """Return what a user types to continue a run."""
    return f"dqn resume {shlex.quote(str(run.path))}"


def recorded_spec(run: RunDirectory) -> ResolvedSpec:
    """Return the spec of a run, under the name the run began with."""
    return replace(load_resolved(run.spec), name=run.recorded("name"))


def _where_it_was(spec: Spec, run: RunDirectory, device: torch.device) -> Spec:
    """Return the spec with its replay where the run had it: `auto` may choose otherwise today."""
    on_gpu = device.type == "cuda" and run.recorded("replay_device") == "cuda"
    return replace(spec, replay=replace(spec.replay, device="cuda" if on_gpu else "cpu"))
