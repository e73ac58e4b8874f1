"""`dqn train` and `dqn resume`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import typer

from atari_dqn.cli.show import shown
from atari_dqn.clock import steps_to_frames
from atari_dqn.devices import resolve_device
from atari_dqn.errors import UserError
from atari_dqn.hardware import Hardware, find_hardware
from atari_dqn.metrics.events import Notice, Sink
from atari_dqn.plan import check_fits, make_plan
from atari_dqn.plan_text import plan_text
from atari_dqn.run import RunDirectory, default_run_dir, refuse_existing
from atari_dqn.sinks.choice import Outlets, chosen_sinks, remembered_sinks
from atari_dqn.sizes import MOST_ACTIONS
from atari_dqn.spec.loader import ResolvedSpec, load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.train import launch
from atari_dqn.train.rate import measure_frames_per_second
from atari_dqn.train.resumption import point_of, recorded_spec


def train(
    spec_path: Path,
    overrides: Sequence[str],
    *,
    run_dir: Path | None,
    device: str,
    plan_only: bool,
    plain: bool,
    sinks: Sequence[str],
    notify: str | None,
) -> None:
    """Train a new run, or print its plan."""
    resolved = load_spec(spec_path, overrides)
    outlets = Outlets(sinks=chosen_sinks(sinks), notify=notify)
    path = run_dir or default_run_dir(resolved.name, resolved.spec.seed)
    chosen = resolve_device(device)
    if plan_only:
        print_plan(resolved, path, chosen)
        return
    refuse_existing(path)
    hardware = _refuse_what_cannot_fit(resolved.spec, path, chosen)
    origin = launch.Origin(command_line=sys.argv, hardware=hardware)
    with shown(path.name, resolved, resolved.spec.training.total_frames, plain=plain) as views:
        _say_what_is_compiled(resolved.spec, views, step=0)
        summary = launch.start(resolved, path, device=chosen, views=views, origin=origin, outlets=outlets)
    typer.echo(result_text(path, summary))


def resume(
    run_dir: Path,
    *,
    checkpoint: str | None,
    discard_later: bool,
    set_aside_logs: bool,
    frames: int | None,
    device: str | None,
    plain: bool,
    sinks: Sequence[str] | None,
    notify: str | None,
) -> None:
    """Continue a run, on the device it began on and with the sinks it had unless others are named."""
    run = RunDirectory.open(run_dir)
    names = remembered_sinks(run_dir) if sinks is None else sinks
    outlets = Outlets(sinks=chosen_sinks(names), notify=notify)
    with run.locked():
        point = point_of(run, checkpoint, set_aside_logs=set_aside_logs)
        budget = point.budget(frames)
    resolved = recorded_spec(run)
    chosen = resolve_device(device or run.recorded("device"))
    extended = replace(resolved.spec, training=replace(resolved.spec.training, total_frames=budget))
    _refuse_what_cannot_fit(extended, run_dir, chosen)
    with shown(run_dir.resolve().name, resolved, budget, plain=plain) as views:
        _say_what_is_compiled(extended, views, step=point.step)
        summary = launch.resume(
            run,
            device=chosen,
            views=views,
            total_frames=frames,
            checkpoint=checkpoint,
            discard_later=discard_later,
            set_aside_logs=set_aside_logs,
            outlets=outlets,
        )
    typer.echo(result_text(run_dir, summary))


def _say_what_is_compiled(spec: Spec, views: Sequence[Sink], *, step: int) -> None:
    """Tell a person what they wait for before anything moves."""
    if not spec.learner.compile:
        return
    told = Notice(
        kind="compiling",
        step=step,
        env_frames=steps_to_frames(step, frame_skip=spec.env.frame_skip),
        message="acting and learning, up to a minute; a few seconds the next time",
    )
    for view in views:
        view.handle(told)


def _refuse_what_cannot_fit(spec: Spec, path: Path, device: torch.device) -> Hardware:
    """Raise a `UserError` for a run that this machine cannot hold; return the machine.

    Before anything large is made, the emulator's screen included: hence no game's own number of actions.
    """
    hardware = find_hardware(path)
    check_fits(make_plan(spec, num_actions=MOST_ACTIONS, device=str(device), hardware=hardware), hardware)
    return hardware


def print_plan(resolved: ResolvedSpec, path: Path, device: torch.device) -> None:
    """Print what a run would need, its speed measured here for a moment; what cannot fit is refused."""
    hardware = find_hardware(path)
    plan = make_plan(resolved.spec, num_actions=MOST_ACTIONS, device=str(device), hardware=hardware)
    try:
        check_fits(plan, hardware)
    except UserError:
        typer.echo(plan_text(plan, hardware))
        raise
    measured = measure_frames_per_second(resolved.spec, device)
    timed = replace(plan, frames_per_second=measured, rate_basis="measured here just now")
    typer.echo(plan_text(timed, hardware))


def result_text(path: Path, summary: dict[str, Any]) -> str:
    """Return what a finished run came to, in a few lines."""
    return (
        f"{summary['env_frames']:,} frames, track {summary['track']}, {path}\n"
        f"final evaluation: {summary['score']}, protocol {summary['protocol_digest']}\n"
        f"play it again:    dqn eval {shlex.quote(str(path))}"
    )
