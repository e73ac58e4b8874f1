"""`dqn train`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.actors_on_ray import ActorSite, ActorSiteOption, actors_at, plays_on_ray
from atari_dqn.cli.options import (
    AddressOption,
    DeviceOption,
    NotifyOption,
    PlainOption,
    SetOption,
    SinkOption,
    SpecPath,
    refuse_ignored,
)
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.formatting import wrapped
from atari_dqn.machine.devices import check_device_name, resolve_device

if TYPE_CHECKING:
    from atari_dqn.machine.contention import CoreTimes
    from atari_dqn.spec.loader import ResolvedSpec
    from atari_dqn.telemetry.events import Sink
    from atari_dqn.telemetry.sinks.options import SinkOptions

EXAMPLES = """\
dqn train pong_quick
dqn train pong_trackB --set game=breakout --set seed=2
dqn train pong_trackA --set training.total_frames=2.4M --plan"""

_PLAN_SECONDS = 9.5
"""Duration of `--plan`, imports included."""
_LEAST_MEASURING_SECONDS = 4.0
"""Shortest duration of the measurement of `--plan`, in which a second process imports the packages too."""


def train(
    spec: SpecPath,
    overrides: SetOption = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN_DIR",
            help="Directory of the run. Default: outputs/NAME_seedN, with the game if --set changes it.",
        ),
    ] = None,
    device: DeviceOption = "auto",
    plan: Annotated[bool, typer.Option("--plan", help="Print memory, disk and time; start nothing.")] = False,
    on: ActorSiteOption = "local",
    address: AddressOption = None,
    plain: PlainOption = False,
    sink: SinkOption = None,
    notify: NotifyOption = None,
) -> None:
    """Train an agent specified by a spec, in a new run directory."""
    with interrupts_blocked():
        from atari_dqn.machine.contention import read_core_times
        from atari_dqn.run.directory import default_run_dir, refuse_existing
        from atari_dqn.run.leases.guard import end_with_owner
        from atari_dqn.spec.loader import load_spec
        from atari_dqn.telemetry.sinks.options import SinkOptions, checked_sinks

    refuse_ignored("--plan", is_given=plan, plain=plain, sink=bool(sink), notify=notify is not None)
    end_with_owner()
    core_times = read_core_times()
    resolved = load_spec(spec, overrides or [])
    sink_options = SinkOptions(sinks=checked_sinks(sink or []), notify=notify)
    path = run_dir or default_run_dir(resolved.name, resolved.spec.seed)
    check_device_name(device)
    plays_on_ray(on, address, resolved.spec, plan=plan)
    if plan:
        _print_plan(resolved, path, device)
        return
    refuse_existing(path)
    with actors_at(on, address, resolved.spec, path) as actors:
        _start(resolved, path, device, core_times, sink_options, actors, plain=plain)


def _start(
    resolved: ResolvedSpec,
    path: Path,
    device_name: str,
    core_times: CoreTimes,
    sink_options: SinkOptions,
    actors: ActorSite,
    *,
    plain: bool,
) -> None:
    """Train a new run to its end and print its result."""
    with interrupts_blocked():
        from atari_dqn.api.training import start
        from atari_dqn.train.summary import result_text
        from atari_dqn.view.run_views import run_views

    def views(resolved: ResolvedSpec) -> AbstractContextManager[Sequence[Sink]]:
        return run_views(path.name, resolved, resolved.spec.training.total_frames, plain=plain)

    summary = start(
        resolved,
        path,
        device=resolve_device(device_name),
        open_views=views,
        command_line=sys.argv,
        busy_since=core_times,
        sink_options=sink_options,
        make_actors=actors.make,
        check_run_fits=actors.check_run_fits,
    )
    typer.echo(result_text(path, summary))


def _print_plan(resolved: ResolvedSpec, path: Path, device_name: str) -> None:
    """Print what a run needs and a brief measurement of its speed; `UserError` if it cannot fit."""
    with interrupts_blocked():
        from atari_dqn.api.training import resolved_here
        from atari_dqn.machine.actors import check_cores
        from atari_dqn.machine.automatic import choices_text
        from atari_dqn.machine.hardware import find_hardware
        from atari_dqn.machine.plan import check_fits, make_plan
        from atari_dqn.machine.plan_text import plan_text
        from atari_dqn.machine.sizes import MOST_ACTIONS
        from atari_dqn.train.estimate import estimate_rate

    device, hardware = str(resolve_device(device_name)), find_hardware(path)
    resolved, choices = resolved_here(resolved, device, hardware)
    if choices:
        typer.echo(wrapped(choices_text(choices)))
    check_cores(resolved.spec, hardware.cores_usable)
    plan = make_plan(resolved.spec, num_actions=MOST_ACTIONS, device=device, hardware=hardware)
    try:
        check_fits(plan, hardware)
    except UserError:
        typer.echo(plan_text(plan, hardware))
        raise
    found = estimate_rate(resolved.spec, device, within_seconds=_measuring_seconds())
    timed = replace(plan, frames_per_second=found.frames_per_second, rate_basis=found.basis)
    typer.echo(plan_text(timed, hardware))


def _measuring_seconds() -> float:
    """Compute the time left for the measurement from the time since the process started."""
    import psutil  # type: ignore[import-untyped]

    spent: float = time.time() - psutil.Process().create_time()
    return max(_LEAST_MEASURING_SECONDS, _PLAN_SECONDS - spent)
