"""Commands that make runs and prove them: `train`, `resume`, `verify`, `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.named import run_named, spec_named
from atari_dqn.cli.options import (
    DeviceOption,
    JsonOption,
    NotifyOption,
    OwnDeviceOption,
    PlainOption,
    RunPath,
    SetOption,
    SinkOption,
    SpecPath,
    integer,
    number,
)
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.machine.devices import check_device_name


def train(
    spec: SpecPath,
    overrides: SetOption = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="RUN_DIR", help="Where the run is kept. Default: outputs/NAME_seedN."),
    ] = None,
    device: DeviceOption = "auto",
    plan: Annotated[bool, typer.Option("--plan", help="Print memory, disk and time; start nothing.")] = False,
    plain: PlainOption = False,
    sink: SinkOption = None,
    notify: NotifyOption = None,
) -> None:
    """Train an agent as a spec says, into a new run directory."""
    with interrupts_blocked():
        from atari_dqn.cli.train import train as run

    run(
        spec,
        overrides or [],
        run_dir=run_dir,
        device=device,
        plan_only=plan,
        plain=plain,
        sinks=sink or [],
        notify=notify,
    )


def resume(
    run_dir: RunPath,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="NAME", help="latest, best or step_…. Default: the latest.")
    ] = None,
    discard_later: Annotated[
        bool, typer.Option("--discard-later", help="Let go of checkpoints after the one named.")
    ] = False,
    set_aside_damaged_logs: Annotated[
        bool,
        typer.Option("--set-aside-damaged-logs", help="Keep damaged logs in set_aside/ and begin new ones."),
    ] = False,
    frames: Annotated[
        str | None, typer.Option(metavar="FRAMES", help="Raise the budget to this many frames.")
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(metavar="N", help="Threads of torch from here on; another number rounds otherwise."),
    ] = None,
    device: OwnDeviceOption = None,
    plain: PlainOption = False,
    sink: SinkOption = None,
    notify: NotifyOption = None,
) -> None:
    """Continue a run from a checkpoint; log rows after it are cut off, and written again."""
    total_frames, num_threads = integer("--frames", frames), integer("--threads", threads)
    with interrupts_blocked():
        from atari_dqn.cli.train import resume as run

    run(
        run_dir,
        checkpoint=checkpoint,
        discard_later=discard_later,
        set_aside_logs=set_aside_damaged_logs,
        frames=total_frames,
        threads=num_threads,
        device=device,
        plain=plain,
        sinks=sink,
        notify=notify,
    )


def verify(
    run_dir: RunPath,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Play on from latest, best, step_… or beginning. Default: one that can be compared.",
        ),
    ] = None,
    frames: Annotated[
        str | None,
        typer.Option(
            metavar="FRAMES",
            help="Emulator frames to play on for, within the run. Default: 10,000 with learning.",
        ),
    ] = None,
    device: OwnDeviceOption = None,
    json: JsonOption = False,
) -> None:
    """Check every file of a run, and that going on from a checkpoint repeats exactly."""
    played_frames = integer("--frames", frames)
    check_device_name(device)
    run_named(run_dir)
    with interrupts_blocked():
        from atari_dqn.cli.verify import verify as run

    run(run_dir, checkpoint=checkpoint, frames=played_frames, device=device, as_json=json)


def bench(
    spec: SpecPath,
    overrides: SetOption = None,
    device: DeviceOption = "auto",
    seconds: Annotated[str, typer.Option(metavar="SECONDS", help="How long to train.")] = "10",
    json: JsonOption = False,
) -> None:
    """Measure how fast a spec trains here, where the time goes, and what the hardware could do."""
    trained_seconds = number("--seconds", seconds, low=1.0)
    check_device_name(device)
    spec_named(spec, overrides)
    with interrupts_blocked():
        from atari_dqn.cli.bench import bench_spec as run

    run(spec, overrides or [], device=device, seconds=trained_seconds, as_json=json)
