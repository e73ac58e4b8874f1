"""Build the session of a run, and run it to its end: its summary, or the report of what ended it before."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from atari_dqn.envs.pool import WorkerDiedError
from atari_dqn.errors import DiskFullError, HaltedError, InfrastructureError, InterruptedRunError
from atari_dqn.files.atomic import write_json_atomically
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.guard import check_lease
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notice, TrainingStarted
from atari_dqn.train.build import build_gates
from atari_dqn.train.contention_monitor import ContentionMonitor, contention_remedy
from atari_dqn.train.health import HealthMonitor
from atari_dqn.train.interrupt import SignalGuard
from atari_dqn.train.learning import Learning
from atari_dqn.train.resume_point import resume_command
from atari_dqn.train.run_sinks import RunSinks
from atari_dqn.train.session import Session
from atari_dqn.train.summary import sealed_summary, summary_of


def make_session(
    training: Learning, spec: Spec, run: RunDirectory, sinks: RunSinks, checkpoints: CheckpointStore
) -> Session:
    """Build the session of a training in a run directory."""
    return Session(
        training,
        spec,
        run=run,
        tables=sinks.tables,
        sinks=sinks,
        checkpoints=checkpoints,
        health=HealthMonitor(
            training,
            build_gates(spec, training.clock),
            check_period_updates=spec.gates.check_period_updates,
            sinks=sinks,
            run=run,
            wait_for_checkpoint=checkpoints.wait,
            contention=_contention_monitor(training, run, sinks),
        ),
    )


def _contention_monitor(training: Learning, run: RunDirectory, sinks: RunSinks) -> ContentionMonitor:
    threads = torch.get_num_threads()
    command, device = resume_command(run), training.device.type
    return ContentionMonitor(
        sinks,
        training.clock,
        threads=threads,
        remedy=partial(contention_remedy, threads=threads, device=device, resume_command=command),
    )


def store_of(run: RunDirectory, spec: Spec) -> CheckpointStore:
    """Return the store of a run's checkpoints, which keeps as many of them as the spec says."""
    return CheckpointStore(
        run.checkpoints,
        keep_last=spec.checkpoint.keep_last,
        keep_best=spec.checkpoint.keep_best,
        save_replay=spec.checkpoint.replay,
    )


def run_to_end(
    session: Session, resolved: ResolvedSpec, run: RunDirectory, guard: SignalGuard
) -> dict[str, Any]:
    """Train to the end of the budget, write the summary and return it; report what ends the run before."""
    session.sinks.handle(TrainingStarted(counters=session.training.clock))
    try:
        summary = summary_of(session, resolved, session.run(guard))
        check_lease()
        write_json_atomically(run.summary, sealed_summary(summary))
        session.notice("finished", f"finished at {summary['env_frames']:,} frames")
    except InterruptedRunError as error:
        error.add_note(
            f"saved at {session.training.clock.env_frames:,} frames; `{resume_command(run)}` continues"
        )
        raise
    except WorkerDiedError as error:
        session.notice("worker died", str(error))
        raise InfrastructureError(f"{error}; {_way_on(session, run)}") from error
    except HaltedError:  # its gate has reported it
        raise
    except DiskFullError as error:
        _report_failure(session, error)
        error.add_note(f"once there is space, {_way_on(session, run)}")
        raise
    except Exception as error:
        _report_failure(session, error)
        raise
    return summary


def _way_on(session: Session, run: RunDirectory) -> str:
    """Name the command that continues a run, and the step that it continues from."""
    saved = session.checkpoints.catalog()
    from_where = f"continues from step {saved[-1].step:,}" if saved else "starts again: nothing was saved"
    return f"`{resume_command(run)}` {from_where}"


def _report_failure(session: Session, error: Exception) -> None:
    """Report an error that ends the run and has no notice of its own."""
    clock = session.training.clock
    message = " ".join(str(error).split()) or type(error).__name__
    session.sinks.handle_failure(
        Notice(kind="failed", step=clock.steps, env_frames=clock.env_frames, message=message)
    )
