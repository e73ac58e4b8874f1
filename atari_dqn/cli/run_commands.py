"""Commands that make runs and prove them: `train`, `resume`, `verify`, `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.options import (
    DeviceOption,
    NotifyOption,
    PlainOption,
    RunPath,
    SetOption,
    SinkOption,
    SpecPath,
)
from atari_dqn.interrupts import interrupts_blocked


def train(
    spec: SpecPath,
    overrides: SetOption = None,
    run_dir: Annotated[
        Path | None, typer.Option(help="Where the run is kept. Default: outputs/<spec>_seed<seed>.")
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
    frames: Annotated[int | None, typer.Option(help="Raise the budget to this many frames.")] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or cuda:N. Default: where the run began.")
    ] = None,
    plain: PlainOption = False,
    sink: SinkOption = None,
    notify: NotifyOption = None,
) -> None:
    """Continue a run from a checkpoint; log rows after it are cut off, and written again."""
    with interrupts_blocked():
        from atari_dqn.cli.train import resume as run

    run(
        run_dir,
        checkpoint=checkpoint,
        discard_later=discard_later,
        frames=frames,
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
        int | None,
        typer.Option(
            min=1, help="Emulator frames to play on for, within the run. Default: 10,000 with learning."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or cuda:N. Default: where the run began.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check every file of a run, and that going on from a checkpoint repeats exactly."""
    with interrupts_blocked():
        from atari_dqn.cli.verify import verify as run

    run(run_dir, checkpoint=checkpoint, frames=frames, device=device, as_json=json)


def bench(
    spec: SpecPath,
    overrides: SetOption = None,
    device: DeviceOption = "auto",
    seconds: Annotated[float, typer.Option(min=1.0, help="How long to train.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how fast a spec trains here, where the time goes, and what the hardware could do."""
    with interrupts_blocked():
        from atari_dqn.cli.bench import bench_spec as run

    run(spec, overrides or [], device=device, seconds=seconds, as_json=json)
