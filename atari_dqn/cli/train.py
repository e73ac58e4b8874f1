"""`dqn train` and `dqn resume`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from atari_dqn.cli.show import shown
from atari_dqn.clock import steps_to_frames
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.machine.automatic import resolve_auto
from atari_dqn.machine.cgroup import ControlGroups
from atari_dqn.machine.contention import CoreTimes, contention, read_core_times
from atari_dqn.machine.devices import check_device_name, resolve_device
from atari_dqn.machine.hardware import Hardware, allocated_bytes, find_hardware, usable_cores
from atari_dqn.machine.plan import check_fits, make_plan
from atari_dqn.machine.sizes import MOST_ACTIONS
from atari_dqn.run.directory import RunDirectory, default_run_dir, refuse_existing
from atari_dqn.run.threads import check_threads, threads_at
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notice, Sink
from atari_dqn.telemetry.sinks.options import SinkOptions, checked_sinks, recorded_sinks

if TYPE_CHECKING:  # what is wrong with the input is said before torch is imported
    import torch


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
    before = read_core_times()
    resolved = load_spec(spec_path, overrides)
    sink_options = SinkOptions(sinks=checked_sinks(sinks), notify=notify)
    path = run_dir or default_run_dir(resolved.name, resolved.spec.seed)
    check_device_name(device)
    if not plan_only:
        refuse_existing(path)
    _import_training()
    import torch

    from atari_dqn.cli.plan import print_plan
    from atari_dqn.train import launch

    chosen = resolve_device(device)
    hardware = find_hardware(path)
    resolved, choices = resolve_auto(resolved, device=str(chosen), hardware=hardware)
    if plan_only:
        print_plan(resolved, str(chosen), hardware, choices)
        return
    _refuse_what_cannot_fit(resolved.spec, chosen, hardware)
    busy = _busy(before, chosen, torch.get_num_threads(), "set OMP_NUM_THREADS={threads}")
    origin = launch.Origin(command_line=sys.argv, hardware=hardware, choices=choices)
    with shown(path.name, resolved, resolved.spec.training.total_frames, plain=plain) as views:
        _say_what_to_expect(resolved.spec, views, step=0, busy=busy)
        summary = launch.start(
            resolved, path, device=chosen, views=views, origin=origin, sink_options=sink_options
        )
    typer.echo(result_text(path, summary))


def resume(
    run_dir: Path,
    *,
    checkpoint: str | None,
    discard_later: bool,
    set_aside_logs: bool,
    frames: int | None,
    threads: int | None,
    device: str | None,
    plain: bool,
    sinks: Sequence[str] | None,
    notify: str | None,
) -> None:
    """Continue a run, on its device, with its threads and sinks unless others are named."""
    before = read_core_times()
    _refuse_wrong_options(threads, device)
    run = RunDirectory.open(run_dir)
    names = recorded_sinks(run_dir) if sinks is None else sinks
    sink_options = SinkOptions(sinks=checked_sinks(names), notify=notify)
    _import_training()
    from atari_dqn.train import launch
    from atari_dqn.train.resumption import recorded_spec, resume_point

    with run.locked():
        point = resume_point(run, checkpoint, set_aside_logs=set_aside_logs)
        budget = point.budget(frames)
    resolved = recorded_spec(run)
    chosen = resolve_device(device or run.recorded("device"))
    extended = replace(resolved.spec, training=replace(resolved.spec.training, total_frames=budget))
    _refuse_what_cannot_fit(extended, chosen, find_hardware(run_dir), run)
    busy = _busy(before, chosen, threads or threads_at(run, point.step), "resume it with --threads {threads}")
    with shown(run_dir.resolve().name, resolved, budget, plain=plain) as views:
        _say_what_to_expect(extended, views, step=point.step, busy=busy)
        summary = launch.resume(
            run,
            device=chosen,
            views=views,
            total_frames=frames,
            checkpoint=checkpoint,
            discard_later=discard_later,
            threads=threads,
            set_aside_logs=set_aside_logs,
            sink_options=sink_options,
        )
    typer.echo(result_text(run_dir, summary))


def _refuse_wrong_options(threads: int | None, device: str | None) -> None:
    if threads is not None:
        check_threads(threads, usable_cores(ControlGroups()))
    check_device_name(device)


def _import_training() -> None:
    """Import torch and what trains. An interruption waits: a package it breaks stays broken."""
    with interrupts_blocked():
        import atari_dqn.train.launch  # noqa: F401


def _say_what_to_expect(spec: Spec, views: Sequence[Sink], *, step: int, busy: str | None) -> None:
    """Say, before anything moves, that the machine is busy, and what a person waits for."""
    compiling = "acting and learning, up to a minute; a few seconds the next time"
    messages = {"busy machine": busy, "compiling": compiling if spec.learner.compile else None}
    env_frames = steps_to_frames(step, frame_skip=spec.env.frame_skip)
    for kind, message in messages.items():
        for view in views:
            if message is not None:
                view.handle(Notice(kind=kind, step=step, env_frames=env_frames, message=message))


def _busy(before: CoreTimes, device: torch.device, threads: int, remedy: str) -> str | None:
    """Return the message that other programs use the cores that torch's threads need; None if they do not.

    `before`: the cores' counters when the command began. `remedy` has a place for a better number of threads.
    """
    found = contention(before, read_core_times())
    if device.type != "cpu" or threads == 1 or found is None or not found.leaves_too_few(threads):
        return None
    better = remedy.format(threads=found.suitable_threads)
    return f"{found}, and the {threads} threads of torch would wait for one another: end them, or {better}"


def _refuse_what_cannot_fit(
    spec: Spec, device: torch.device, hardware: Hardware, begun: RunDirectory | None = None
) -> None:
    """Raise a `UserError` for a run that this machine cannot hold.

    Before anything large is made, the emulator's screen included: hence no game's own number of actions.
    """
    plan = make_plan(spec, num_actions=MOST_ACTIONS, device=str(device), hardware=hardware)
    held_disk_bytes = None if begun is None else allocated_bytes(begun.checkpoints)
    check_fits(plan, hardware, held_disk_bytes=held_disk_bytes)


def result_text(path: Path, summary: dict[str, Any]) -> str:
    """Return what a finished run came to, in a few lines."""
    return (
        f"{summary['env_frames']:,} frames, track {summary['track']}, {path}\n"
        f"final evaluation: {summary['score']}, protocol {summary['protocol_digest']}\n"
        f"play it again:    dqn eval {shlex.quote(str(path))}"
    )
