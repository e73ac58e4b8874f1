"""Checks and messages before a run starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from atari_dqn import wait_variables
from atari_dqn.clock import steps_to_frames
from atari_dqn.machine.actors import check_cores
from atari_dqn.machine.automatic import why_precision_is_slow
from atari_dqn.machine.contention import CoreTimes, contention, read_core_times, why_waiting_is_slow
from atari_dqn.machine.hardware import Hardware, allocated_bytes
from atari_dqn.machine.plan import check_fits, make_plan
from atari_dqn.machine.sizes import MOST_ACTIONS
from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Notice, Sink

if TYPE_CHECKING:
    import torch

CheckRunFits = Callable[[Spec, "torch.device", Hardware, RunDirectory | None], None]
"""Raises a `UserError` for a run that does not fit where it is to be trained; None for one that is new."""


def check_run_fits(
    spec: Spec,
    device: torch.device,
    hardware: Hardware,
    existing: RunDirectory | None = None,
    *,
    actors_here: bool = True,
) -> None:
    """Raise a `UserError` for a run that this machine cannot hold; `existing` is the run to resume.

    The emulator is not started for this check, so the largest number of actions is assumed.
    """
    if actors_here:
        check_cores(spec, hardware.cores_usable, has_begun=existing is not None)
    plan = make_plan(
        spec,
        num_actions=MOST_ACTIONS,
        device=str(device),
        hardware=hardware,
        actors_here=actors_here,
    )
    held_disk_bytes = None if existing is None else allocated_bytes(existing.checkpoints)
    check_fits(plan, hardware, held_disk_bytes=held_disk_bytes)


def busy_machine(before: CoreTimes, device: torch.device, threads: int, remedy: str) -> str | None:
    """Format the notice that other programs use the cores of torch's threads; None if they do not.

    `before`: the cores' counters at the start of the command. `remedy` has a placeholder `{threads}`.
    """
    found = contention(before, read_core_times())
    if device.type != "cpu" or threads == 1 or found is None or not found.leaves_too_few(threads):
        return None
    better = remedy.format(threads=found.suitable_threads)
    return f"{found}, and the {threads} threads of torch would wait for one another: end them, or {better}"


def announce(spec: Spec, views: Sequence[Sink], *, step: int, busy: str | None) -> None:
    """Show before the start that the machine is busy and that compilation takes time."""
    compiling = "acting and learning, up to a minute; a few seconds the next time"
    messages = {"busy machine": busy, "compiling": compiling if decided(spec.learner.compile) else None}
    env_frames = steps_to_frames(step, frame_skip=spec.env.frame_skip)
    for kind, message in messages.items():
        for view in views:
            if message is not None:
                view.handle(Notice(kind=kind, step=step, env_frames=env_frames, message=message))


def why_slow(spec: Spec, device: torch.device, hardware: Hardware) -> Iterator[str]:
    """Yield each reason, with its remedy, why training is slower on this machine than it could be."""
    reasons = [why_precision_is_slow(decided(spec.learner.precision), device.type, hardware)]
    if device.type == "cpu":
        reasons.append(why_waiting_is_slow(decided(spec.learner.threads), wait_variables()))
    yield from (reason for reason in reasons if reason is not None)
