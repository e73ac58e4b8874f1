"""Train a new run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from atari_dqn.api.arguments import path_of
from atari_dqn.api.run import Run
from atari_dqn.api.specs import Overrides, assignments, resolved_spec
from atari_dqn.assembly.acceleration import has_kernels
from atari_dqn.machine.automatic import Choice, Machine, resolve_auto
from atari_dqn.machine.contention import CoreTimes, read_core_times
from atari_dqn.machine.devices import resolve_device
from atari_dqn.machine.hardware import Hardware, find_hardware
from atari_dqn.run.directory import default_run_dir, refuse_existing
from atari_dqn.run.threads import check_threads
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.telemetry.events import Event, Sink
from atari_dqn.telemetry.sinks.options import NO_SINKS, SinkOptions
from atari_dqn.train import launch, preflight
from atari_dqn.train.build import MakeActors, local_actors
from atari_dqn.train.preflight import CheckRunFits

OpenViews = Callable[[ResolvedSpec], AbstractContextManager[Sequence[Sink]]]
"""Opens the views of a run, given its spec without `auto`."""


def train(
    spec: str | Path,
    *,
    overrides: Overrides | None = None,
    run_dir: str | Path | None = None,
    device: str = "auto",
    on_event: Callable[[Event], None] | None = None,
) -> Run:
    """Train a new run to its end, as `dqn train` does, and return it.

    `on_event` is called with every event: rows of the tables, notices, progress. The arguments of the
    process decide nothing. Call it in the main thread: it saves a checkpoint at Ctrl-C and raises
    `InterruptedRunError`. Other errors are `UserError` for a wrong argument, a run that does not fit this
    machine or a directory that exists, and `HaltedError` if a failure gate halted the run.

    >>> import atari_dqn as dqn
    >>> events = []
    >>> few = {"training.total_frames": 2_000}
    >>> run = dqn.train("catch_smoke", overrides=few, run_dir="outputs/catch", on_event=events.append)
    >>> run
    Run('outputs/catch')
    >>> {type(event).__name__ for event in events} >= {"Row", "Notice", "Progress"}
    True
    """
    before = read_core_times()
    resolved = resolved_spec(spec, overrides)
    path = (
        path_of("run_dir", run_dir)
        if run_dir is not None
        else default_run_dir(resolved.name, resolved.spec.seed)
    )
    refuse_existing(path, where="run_dir")
    views: list[Sink] = [] if on_event is None else [_Callback(on_event)]
    command = ["dqn", "train", str(spec), *(f"--set={each}" for each in assignments(overrides))]
    start(
        resolved,
        path,
        device=resolve_device(device, where="device"),
        open_views=lambda _: nullcontext(views),
        command_line=command,
        busy_since=before,
    )
    return Run(path)


def start(
    resolved: ResolvedSpec,
    path: Path,
    *,
    device: torch.device,
    open_views: OpenViews,
    command_line: Sequence[str],
    busy_since: CoreTimes,
    sink_options: SinkOptions = NO_SINKS,
    make_actors: MakeActors = local_actors,
    check_run_fits: CheckRunFits = preflight.check_run_fits,
) -> dict[str, Any]:
    """Choose what is `auto`, check that the run fits, train it and return its summary.

    `path`: a directory to create; callers have refused one that exists. `make_actors`: makes
    the actors of a spec that has some, by default in processes of this machine. `check_run_fits`: raises a
    `UserError` for a run that does not fit where its learner and these actors are.
    """
    hardware = find_hardware(path)
    resolved, choices = resolved_here(resolved, str(device), hardware)
    check_run_fits(resolved.spec, device, hardware, None)
    threads = decided(resolved.spec.learner.threads)
    busy = preflight.busy_machine(busy_since, device, threads, "set learner.threads = {threads}")
    origin = launch.Origin(command_line=command_line, hardware=hardware, choices=choices)
    with open_views(resolved) as views:
        preflight.announce(resolved.spec, views, step=0, busy=busy)
        return launch.start(
            resolved,
            path,
            device=device,
            views=views,
            origin=origin,
            sink_options=sink_options,
            make_actors=make_actors,
        )


def resolved_here(
    resolved: ResolvedSpec, device: str, hardware: Hardware
) -> tuple[ResolvedSpec, tuple[Choice, ...]]:
    """Replace every `auto` by its value for this machine; `UserError` for more threads than cores."""
    resolved, choices = resolve_auto(
        resolved, Machine(device=device, hardware=hardware, has_kernels=has_kernels)
    )
    check_threads("learner.threads", decided(resolved.spec.learner.threads), hardware.cores_usable)
    return resolved, choices


class _Callback:
    """A sink that calls a function with every event."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event

    def handle(self, event: Event) -> None:
        """Call the function."""
        self._on_event(event)

    def close(self) -> None:
        """Do nothing: there is no file."""
