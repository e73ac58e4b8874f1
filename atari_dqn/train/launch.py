"""Starting and continuing runs: from a spec or a run directory to a session that runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from atari_dqn.checkpoint.store import CheckpointStore, load_checkpoint, read_manifest
from atari_dqn.envs.pool import WorkerDiedError
from atari_dqn.errors import HaltedError, InterruptedRunError, UserError
from atari_dqn.files import write_json_atomically
from atari_dqn.hardware import Hardware
from atari_dqn.metrics.events import Sink
from atari_dqn.metrics.sinks import EventLog, Sinks, TableSink
from atari_dqn.provenance import provenance, versions
from atari_dqn.run import RunDirectory
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.loader import ResolvedSpec, load_resolved
from atari_dqn.spec.render import resolved_toml
from atari_dqn.spec.schema import Spec
from atari_dqn.train.assembly import assemble, build_gates
from atari_dqn.train.session import Session, session_protocol
from atari_dqn.train.training import Training
from atari_dqn.train.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a new run's provenance tells of its start."""

    command_line: Sequence[str]
    hardware: Hardware


def start(
    resolved: ResolvedSpec, path: Path, *, device: torch.device, views: Sequence[Sink], origin: Origin
) -> dict[str, Any]:
    """Train a new run to its end and return its summary. Nothing is written before all parts stand."""
    with closing(assemble(resolved.spec, device)) as training:
        training.begin()
        run = RunDirectory.create(
            path,
            resolved_toml(resolved),
            spec_digest(resolved.spec),
            _provenance(resolved, training, origin),
        )
        with run.locked(), closing(RunSinks(run, views)) as sinks:
            session = _session(training, resolved.spec, run, sinks)
            session.notice("started", f"training {resolved.name} on {device}")
            return _run(session, resolved, run)


def resume(
    run: RunDirectory, *, device: torch.device, views: Sequence[Sink], total_frames: int | None
) -> dict[str, Any]:
    """Continue a run from its latest checkpoint to its end and return its summary.

    `total_frames` raises the budget. `UserError` for a run that is complete and is not extended, or that
    another process is running.
    """
    resolved = recorded_spec(run)
    torch.set_num_threads(run.recorded("torch_threads"))
    with run.locked():
        store = CheckpointStore(run.checkpoints)
        checkpoint = store.latest()
        budget_of(run, total_frames)
        store.tidy()
        with closing(assemble(_where_it_was(resolved.spec, run), device)) as training:
            training_state, bookkeeping = load_checkpoint(checkpoint, device)
            training.load_state_dict(training_state)
            with closing(RunSinks(run, views)) as sinks:
                session = _session(training, resolved.spec, run, sinks)
                session.load_state_dict(bookkeeping)
                session.notice("resumed", f"continuing from {checkpoint.name} on {device}")
                session.watch.announce()
                for difference in _inexact(run, device):
                    session.notice("inexact", f"the run may differ from an unbroken one: {difference}")
                if total_frames is not None:
                    session.extend(total_frames)
                    session.notice("extended", f"the budget is {total_frames:,} frames now")
                return _run(session, resolved, run)


def resume_command(run: RunDirectory) -> str:
    """Return what a user types to continue a run."""
    return f"dqn resume {shlex.quote(str(run.path))}"


def budget_of(run: RunDirectory, total_frames: int | None) -> int:
    """Return the frames a resumed run would go to: `total_frames`, or what its checkpoint is on the way to.

    `UserError` for a complete run that is not extended, and for a budget that is not larger.
    """
    bookkeeping = read_manifest(CheckpointStore(run.checkpoints).latest())["bookkeeping"]
    budget = int(bookkeeping["total_frames"])
    if total_frames is None and bookkeeping["finished"] and run.summary.exists():
        raise UserError(
            f"{run.path} is complete at {budget:,} frames; "
            f"`{resume_command(run)} --frames N` goes on to frame N"
        )
    if total_frames is not None and total_frames <= budget:
        raise UserError(f"--frames {total_frames:,}: the budget is {budget:,} frames already; expected more")
    return total_frames or budget


def _where_it_was(spec: Spec, run: RunDirectory) -> Spec:
    """Return the spec with its replay where the run had it: `auto` may choose otherwise today."""
    return replace(spec, replay=replace(spec.replay, device=run.recorded("replay_device")))


def _inexact(run: RunDirectory, device: torch.device) -> Iterator[str]:
    """Yield what differs from the machine the run began on, each a reason for other roundings."""
    if str(device) != run.recorded("device"):
        yield f"device {device}, it began on {run.recorded('device')}"
    recorded = run.recorded("versions")
    for name, version in versions().items():
        if version != recorded.get(name) and name != "platform":
            yield f"{name} {version}, it began with {recorded.get(name)}"


def recorded_spec(run: RunDirectory) -> ResolvedSpec:
    """Return the spec of a run, under the name the run began with."""
    return replace(load_resolved(run.spec), name=run.recorded("name"))


class RunSinks(Sinks):
    """The sinks of a run: its tables and event log first, the views after them."""

    def __init__(self, run: RunDirectory, views: Sequence[Sink]) -> None:
        self.tables = TableSink(run.tables)
        super().__init__([self.tables, EventLog(run.events), *views])


def _session(training: Training, spec: Spec, run: RunDirectory, sinks: RunSinks) -> Session:
    return Session(
        training,
        spec,
        tables=sinks.tables,
        sinks=sinks,
        checkpoints=CheckpointStore(run.checkpoints, keep_last=spec.checkpoint.keep_last),
        watch=Watch(
            training,
            build_gates(spec, training.clock),
            check_period_updates=spec.gates.check_period_updates,
            sinks=sinks,
            run=run,
        ),
    )


def _run(session: Session, resolved: ResolvedSpec, run: RunDirectory) -> dict[str, Any]:
    try:
        digest = session.run()
    except InterruptedRunError as error:
        error.add_note(
            f"saved at {session.training.clock.env_frames:,} frames; `{resume_command(run)}` goes on"
        )
        raise
    except WorkerDiedError as error:
        session.notice("worker died", str(error))
        saved = session.checkpoints.catalog()
        remedy = (
            f"`{resume_command(run)}` goes on from step {saved[-1].step:,}" if saved else "nothing is saved"
        )
        raise HaltedError(f"{error}; {remedy}") from error
    summary = _summary(session, resolved, digest)
    write_json_atomically(run.summary, summary)
    session.notice("finished", f"finished at {summary['env_frames']:,} frames")
    return summary


def _provenance(resolved: ResolvedSpec, training: Training, origin: Origin) -> dict[str, Any]:
    spec, info = resolved.spec, training.lanes.info
    protocols = [session_protocol(spec, kind, info.rom_md5) for kind in ("light", "full", "final")]
    record = provenance(
        command_line=origin.command_line,
        track=resolved.track_label,
        deviations=resolved.deviations,
        game=spec.game,
        rom_md5=info.rom_md5,
        protocols={protocol.digest(): asdict(protocol) for protocol in protocols},
        device=str(training.device),
        torch_threads=torch.get_num_threads(),
        hardware=origin.hardware,
    )
    place = training.replay.ring.device.type
    return {"name": resolved.name, "replay_device": place, **record}


def _summary(session: Session, resolved: ResolvedSpec, digest: str) -> dict[str, Any]:
    """Return what a finished run came to: the last score, and the best, which is a maximum and says so."""
    clock = session.training.clock
    last_step, last = session.scores[-1]
    protocol = session_protocol(resolved.spec, "final", session.training.lanes.info.rom_md5)
    best_step, best = max(session.scores, key=lambda scored: scored[1].mean_return)
    return {
        "name": resolved.name,
        "track": resolved.track_label,
        "game": resolved.spec.game,
        "seed": resolved.spec.seed,
        "step": clock.steps,
        "env_frames": clock.env_frames,
        "updates": clock.updates,
        "elapsed_seconds": session.elapsed_seconds,
        "score": str(last),
        "last": {"step": last_step, **last.row()},
        "best": {"step": best_step, "of_evaluations": len(session.scores), **best.row()},
        "protocol": asdict(protocol),
        "protocol_digest": protocol.digest(),
        "state_digest": digest,
    }
