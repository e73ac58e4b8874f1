"""`dqn resume`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.actors_on_ray import ActorSiteOption, actors_at
from atari_dqn.cli.options import (
    AddressOption,
    NotifyOption,
    OwnDeviceOption,
    PlainOption,
    ResumeSinkOption,
    RunPath,
    integer,
)
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.machine.devices import check_device_name, resolve_device

if TYPE_CHECKING:
    import torch

    from atari_dqn.machine.contention import CoreTimes
    from atari_dqn.run.directory import RunDirectory
    from atari_dqn.telemetry.events import Sink
    from atari_dqn.telemetry.sinks.options import SinkOptions
    from atari_dqn.train.preflight import CheckRunFits
    from atari_dqn.train.resume_point import ResumePoint

EXAMPLES = """\
dqn resume outputs/pong_quick_seed1
dqn resume outputs/pong_quick_seed1 --frames 5M"""

CheckpointOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="latest, best or step_…. Default: the latest.")
]
DiscardOption = Annotated[
    bool, typer.Option("--discard-later", help="With --checkpoint: delete the later ones.")
]
SetAsideOption = Annotated[
    bool,
    typer.Option("--set-aside-damaged-logs", help="Keep damaged logs in set_aside/ and begin new ones."),
]
FramesOption = Annotated[
    str | None, typer.Option(metavar="FRAMES", help="Raise the budget to this many frames.")
]
ThreadsOption = Annotated[
    str | None,
    typer.Option(metavar="N", help="Threads of torch from here on; another number changes the rounding."),
]


def resume(
    run_dir: RunPath,
    checkpoint: CheckpointOption = None,
    discard_later: DiscardOption = False,
    set_aside_damaged_logs: SetAsideOption = False,
    frames: FramesOption = None,
    threads: ThreadsOption = None,
    device: OwnDeviceOption = None,
    on: ActorSiteOption = "local",
    address: AddressOption = None,
    plain: PlainOption = False,
    sink: ResumeSinkOption = None,
    notify: NotifyOption = None,
) -> None:
    """Continue a run from a checkpoint; log rows after it are cut off, and written again."""
    total_frames, num_threads = _numbers(frames, threads, checkpoint, discard_later=discard_later)
    core_times, run, sink_options = _open(run_dir, num_threads, device, sink, notify)
    with interrupts_blocked():
        from atari_dqn.train import launch
        from atari_dqn.train.resume_point import recorded_spec
        from atari_dqn.train.summary import result_text

    point, budget = _point_and_budget(run, checkpoint, total_frames, set_aside_logs=set_aside_damaged_logs)
    chosen = resolve_device(device or run.recorded("device"))
    with (
        actors_at(on, address, recorded_spec(run).spec, run_dir) as actors,
        _announced(
            point, chosen, budget, num_threads, core_times, actors.check_run_fits, plain=plain
        ) as views,
    ):
        summary = launch.resume(
            run,
            device=chosen,
            views=views,
            total_frames=total_frames,
            checkpoint=checkpoint,
            discard_later=discard_later,
            threads=num_threads,
            set_aside_logs=set_aside_damaged_logs,
            sink_options=sink_options,
            make_actors=actors.make,
        )
    typer.echo(result_text(run_dir, summary))


def _point_and_budget(
    run: RunDirectory, checkpoint: str | None, total_frames: int | None, *, set_aside_logs: bool
) -> tuple[ResumePoint, int]:
    """Find the point from which a run goes on, after checking its files, and its budget in frames."""
    from atari_dqn.run.checkpoint.stages import restore_replaced
    from atari_dqn.train.resumption import resume_point

    with run.locked():
        restore_replaced(run.checkpoints)
        point = resume_point(run, checkpoint, set_aside_logs=set_aside_logs)
        return point, point.budget(total_frames)


def _numbers(
    frames: str | None, threads: str | None, checkpoint: str | None, *, discard_later: bool
) -> tuple[int | None, int | None]:
    """Parse the numbers; `UserError` for these, and for an option without the one that it belongs to."""
    if discard_later and checkpoint is None:
        raise UserError("--discard-later: expected with --checkpoint")
    return integer("--frames", frames), integer("--threads", threads)


def _open(
    run_dir: Path, threads: int | None, device: str | None, sinks: list[str] | None, notify: str | None
) -> tuple[CoreTimes, RunDirectory, SinkOptions]:
    """Check the options and open the run and its sinks, by default those that it had before."""
    with interrupts_blocked():
        from atari_dqn.machine.cgroup import ControlGroups
        from atari_dqn.machine.contention import read_core_times
        from atari_dqn.machine.hardware import usable_cores
        from atari_dqn.run.directory import RunDirectory
        from atari_dqn.run.leases.guard import end_with_owner
        from atari_dqn.run.threads import check_threads
        from atari_dqn.telemetry.sinks.options import SinkOptions, checked_sinks, recorded_sinks

    end_with_owner()
    core_times = read_core_times()
    if threads is not None:
        check_threads("--threads", threads, usable_cores(ControlGroups()))
    check_device_name(device)
    run = RunDirectory.open(run_dir)
    names = recorded_sinks(run_dir) if sinks is None else sinks
    try:
        checked = checked_sinks(names)
    except UserError as error:
        if sinks is not None:
            raise
        reported = f"the run reported to {', '.join(names)} before; `--sink none` resumes it without"
        raise UserError(f"{error}\n{reported}") from error
    return core_times, run, SinkOptions(sinks=checked, notify=notify)


@contextmanager
def _announced(
    point: ResumePoint,
    device: torch.device,
    budget: int,
    threads: int | None,
    core_times: CoreTimes,
    check_run_fits: CheckRunFits,
    *,
    plain: bool,
) -> Iterator[Sequence[Sink]]:
    """Check that the rest of a run fits into the machine, and yield its views with notices on the start."""
    with interrupts_blocked():
        from atari_dqn.machine.hardware import find_hardware
        from atari_dqn.train import preflight
        from atari_dqn.train.resume_point import recorded_spec
        from atari_dqn.view.run_views import run_views

    run, resolved = point.run, recorded_spec(point.run)
    spec = replace(resolved.spec, training=replace(resolved.spec.training, total_frames=budget))
    check_run_fits(spec, device, find_hardware(run.path), run)
    remedy = "resume it with --threads {threads}"
    busy = preflight.busy_machine(core_times, device, threads or point.threads, remedy)
    with run_views(run.path.resolve().name, resolved, budget, plain=plain) as views:
        preflight.announce(spec, views, step=point.step, busy=busy)
        yield views
