"""Start and resume runs: build a session from a spec or a run directory, and run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from atari_dqn.machine.automatic import Choice, choices_text
from atari_dqn.machine.hardware import Hardware, compiler_version, find_hardware
from atari_dqn.run.checkpoint.rewind import rewind
from atari_dqn.run.checkpoint.stages import restore_replaced
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.guard import check_lease
from atari_dqn.run.provenance import provenance
from atari_dqn.run.threads import KEY
from atari_dqn.spec.added_packages import packages_of
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.spec.render import resolved_toml
from atari_dqn.telemetry.events import Sink
from atari_dqn.telemetry.sinks.options import NO_SINKS, SinkOptions
from atari_dqn.train.build import MakeActors, assemble, local_actors
from atari_dqn.train.interrupt import SignalGuard
from atari_dqn.train.learning import Learning
from atari_dqn.train.preflight import why_slow
from atari_dqn.train.resume_exactness import (
    MAY_DIFFER,
    other_threads,
    schedules_that_ended,
    unknown_threads,
    why_inexact,
)
from atari_dqn.train.resume_point import ResumePoint, recorded_spec
from atari_dqn.train.resumption import refuse_to_discard, reopened, resume_point
from atari_dqn.train.run_session import make_session, run_to_end, store_of
from atari_dqn.train.run_sinks import RunSinks, open_sinks
from atari_dqn.train.session import Session
from atari_dqn.train.set_aside import forget_logs, set_aside
from atari_dqn.train.training_evaluations import session_protocols


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The command line, hardware and resolved `auto` keys of a new run, for its provenance."""

    command_line: Sequence[str]
    hardware: Hardware
    choices: Sequence[Choice] = ()
    """The resolved values of `auto` keys."""


def start(
    resolved: ResolvedSpec,
    path: Path,
    *,
    device: torch.device,
    views: Sequence[Sink],
    origin: Origin,
    sink_options: SinkOptions = NO_SINKS,
    make_actors: MakeActors = local_actors,
) -> dict[str, Any]:
    """Train a new run to its end and return its summary. Nothing is written before all parts are built."""
    with closing(assemble(resolved.spec, device, make_actors)) as training:
        training.begin()
        check_lease()
        record = _provenance(resolved, training, origin)
        with SignalGuard() as guard:  # from the first file of the run until its sinks are closed
            run = RunDirectory.create(path, resolved_toml(resolved), spec_digest(resolved.spec), record)
            with (
                run.locked(),
                closing(RunSinks(run, views, open_sinks(sink_options, resolved, run))) as sinks,
            ):
                session = make_session(training, resolved.spec, run, sinks, store_of(run, resolved.spec))
                session.notice("started", f"training {resolved.name} on {device}")
                if origin.choices:
                    session.notice("auto", choices_text(origin.choices))
                _report_if_slow(session, device, origin.hardware)
                with session.videos:  # which may take longer than the run
                    return run_to_end(session, resolved, run, guard)


def resume(
    run: RunDirectory,
    *,
    device: torch.device,
    views: Sequence[Sink],
    total_frames: int | None,
    checkpoint: str | None = None,
    discard_later: bool = False,
    threads: int | None = None,
    set_aside_logs: bool = False,
    sink_options: SinkOptions = NO_SINKS,
    make_actors: MakeActors = local_actors,
) -> dict[str, Any]:
    """Continue a run from a checkpoint, the latest by default, to its end and return its summary.

    `total_frames`: the raised budget. `threads`: torch's threads from here on, which later resumes keep.
    Nothing is changed before all files were checked; with `set_aside_logs` damaged logs are replaced by new
    ones. Raise `UserError` for a budget that `ResumePoint.budget` refuses or a run that another process is
    running, and `DamagedError` with the damaged file and a remedy.
    """
    with run.locked():
        restore_replaced(run.checkpoints)
        point = resume_point(run, checkpoint, set_aside_logs=set_aside_logs)
        point.budget(total_frames)
        resolved = recorded_spec(run)
        store = store_of(run, resolved.spec)
        if checkpoint is not None and not discard_later:
            refuse_to_discard(store, point)
        with (
            reopened(point, device, threads=threads, make_actors=make_actors) as training,
            SignalGuard() as guard,  # from the first change of the run until its sinks are closed
        ):
            repairs = _go_back(store, point)
            point, moved = set_aside(point)
            with closing(RunSinks(run, views, open_sinks(sink_options, resolved, run))) as sinks:
                session = make_session(training, resolved.spec, run, sinks, store)
                restore(session, point, device)
                _report_damage(session, repairs, moved)
                forget_logs(run, point, tuple(moved))
                _report_if_slow(session, device, find_hardware(run.path))
                if total_frames is not None:
                    _extend(session, total_frames)
                with session.videos:  # which may take longer than the run
                    return run_to_end(session, resolved, run, guard)


def _go_back(store: CheckpointStore, point: ResumePoint) -> tuple[str, ...]:
    """Remove the checkpoints after a point, and the summary of an end; return the repairs of the catalog."""
    repairs: tuple[str, ...] = ()
    if point.checkpoint is None:
        store.tidy()
    else:
        repairs = rewind(store, point.step)
        store.continue_from(point.checkpoint)
    point.run.summary.unlink(missing_ok=True)  # or a kill at the next end would leave this one as its summary
    return repairs


def restore(session: Session, point: ResumePoint, device: torch.device) -> None:
    """Restore a session from its checkpoint, and report every reason why it may not be exact."""
    check_lease()
    threads = torch.get_num_threads()
    concerning_threads = [*other_threads(point.threads, threads), *unknown_threads(point, threads)]
    if point.checkpoint is None:
        session.tables.restart()
        message = f"the run ended before it saved a checkpoint, so it starts again on {device}"
    else:
        session.load_state_dict(point.bookkeeping)
        message = f"continuing from {point.name} on {device}"
    protocols = _unrecorded_protocols(session, point.run)
    details = {"protocols": protocols} if protocols else {}
    session.notice("resumed", message, **{KEY: threads, "total_frames": session.total_frames, **details})
    session.health.announce()
    for reason in (*why_inexact(point, device), *concerning_threads):
        session.notice("inexact", f"{MAY_DIFFER}{reason}")


def _unrecorded_protocols(session: Session, run: RunDirectory) -> dict[str, dict[str, Any]]:
    """Return the protocols of coming evaluations that provenance.json does not have, by fingerprint."""
    known = run.read_provenance().get("protocols", {})
    protocols = session_protocols(session.spec, session.training.envs.info.rom_md5)
    return {digest: fields for digest, fields in protocols.items() if digest not in known}


def _report_damage(session: Session, repairs: Sequence[str], moved: Mapping[str, str]) -> None:
    """Report the repairs of the catalog, and the logs that were set aside."""
    for sentence in repairs:
        session.notice("catalog", sentence)
    for log, outcome in moved.items():
        session.notice("set aside", f"{log} was damaged; {outcome}, and a new one is started", log=log)


def _report_if_slow(session: Session, device: torch.device, hardware: Hardware) -> None:
    for reason in why_slow(session.spec, device, hardware):
        session.notice("slow", reason)


def _extend(session: Session, total_frames: int) -> None:
    """Raise the budget, save it before training continues, and report the effect on schedules."""
    session.extend(total_frames)
    session.save()
    schedules = schedules_that_ended(session.spec)
    message = f"the budget is {total_frames:,} frames now; {schedules}"
    session.notice("extended", message, total_frames=total_frames, schedules=schedules)


def _provenance(resolved: ResolvedSpec, training: Learning, origin: Origin) -> dict[str, Any]:
    spec, info = resolved.spec, training.envs.info
    record = provenance(
        command_line=origin.command_line,
        track=resolved.track_label,
        deviations=resolved.deviations,
        game=spec.game,
        rom_md5=info.rom_md5,
        protocols=session_protocols(spec, info.rom_md5),
        device=str(training.device),
        torch_threads=torch.get_num_threads(),
        kernels=training.backend.kernels(),
        hardware=origin.hardware,
        packages=packages_of(spec),
    )
    place = training.replay.ring.device.type
    compiler = {"compiler": compiler_version()} if decided(spec.learner.compile) else {}
    auto = {choice.key: choice.value for choice in origin.choices}
    here = {"replay_device": place, "acceleration": training.backend.choices()}
    return {"name": resolved.name, **here, "auto": auto, **record, **compiler}
