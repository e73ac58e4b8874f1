"""Determine whether a resumed run is exact, that is equal to an uninterrupted one bit by bit."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from atari_dqn.assembly.acceleration import kernels_for, kernels_here
from atari_dqn.envs.exactness import why_inexact_game
from atari_dqn.machine.hardware import compiler_version, find_hardware
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.provenance import versions
from atari_dqn.run.threads import KEY
from atari_dqn.spec.added_packages import packages_of, unrecorded_code
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.schema import Spec
from atari_dqn.train.resume_point import ResumePoint, recorded_spec

MAY_DIFFER = "the run may differ from an uninterrupted one: "
"""The beginning of the message of an event of kind `inexact`, which a reason follows."""
_THREADS = "of torch's threads"


def why_inexact(point: ResumePoint, device: torch.device) -> Iterator[str]:
    """Yield each reason why a run, continued on `device`, may differ from an uninterrupted one."""
    yield from why_not_repeatable(point.run, device)
    if point.checkpoint is not None:
        yield from why_not_restored(point.run)


def why_not_restored(run: RunDirectory) -> Iterator[str]:
    """Yield each reason why a checkpoint of the run does not restore its complete state."""
    spec = recorded_spec(run).spec
    if not spec.checkpoint.replay:
        yield "its replay was not saved (checkpoint.replay = false), and refills before learning continues"
    if spec.actors.mode == "free_running":
        yield "its actors begin anew with the learner's weights (actors.mode = free_running)"
    if spec.env.kind == "atari" and (problem := why_inexact_game(spec.game)):
        yield problem


def why_not_repeatable(run: RunDirectory, device: torch.device) -> Iterator[str]:
    """Yield each reason why the run, repeated on this machine on `device`, may differ from its records."""
    yield from _other_machine(run, device)
    recorded, spec = run.recorded("versions"), recorded_spec(run).spec
    packages = packages_of(spec)
    not_compared = {"platform", *unrecorded_code(packages, recorded)}
    for name, version in {**versions(), **packages}.items():
        if version != recorded.get(name) and name not in not_compared:
            yield f"{name} {version}, it began with {recorded.get(name, 'an unrecorded version')}"
    if device.type == "cpu":
        yield from _other_kernels(run, decided(spec.learner.precision))
    if decided(spec.learner.compile):
        yield from _other_compiler(run)
    yield from why_not_deterministic(spec, device)


def why_not_deterministic(spec: Spec, device: torch.device) -> Iterator[str]:
    """Yield each reason why two trainings of a spec on one machine on `device` may differ."""
    if spec.actors.mode == "free_running":
        yield "actors and learner work at the same time, in no fixed order (actors.mode = free_running)"
    if device.type == "cuda" and not spec.learner.deterministic:
        yield "its kernels are selected for speed and are not deterministic (learner.deterministic = false)"
    if device.type == "cuda" and decided(spec.learner.compile):
        yield "its kernels are compiled again, and may be selected by speed (learner.compile = true)"


def other_threads(before: int, now: int) -> Iterator[str]:
    """Yield a reason if the number of torch's threads changes."""
    if now != before:
        yield f"{now} {_THREADS}, {before} until here: sums round differently"


def unknown_threads(point: ResumePoint, now: int) -> Iterator[str]:
    """Yield a reason if only the event log, which is damaged, may have recorded the number of threads."""
    log = point.run.events.name
    if log in point.damaged_logs and KEY not in point.bookkeeping:
        yield f"{now} {_THREADS}; {log}, which was damaged, may have recorded another number"


def concerns_threads(reason: str) -> bool:
    """Return whether a reason is one of `other_threads` or `unknown_threads`."""
    return _THREADS in reason


def schedules_that_ended(spec: Spec) -> str:
    """Describe the effect of a raised budget on schedules that end with the budget."""
    replay = spec.replay
    if spec.toggles.prioritized and replay.beta_start != replay.beta_end:
        return f"β still reaches {replay.beta_end:g} at frame {spec.training.total_frames:,}"
    return "no schedule ends with the budget"


def _other_compiler(run: RunDirectory) -> Iterator[str]:
    began, here = run.read_provenance().get("compiler"), compiler_version()
    if here != began:
        yield f"C++ compiler {here}, it began with {began}"


def _other_kernels(run: RunDirectory, precision: str) -> Iterator[str]:
    recorded = run.read_provenance().get("kernels", [])
    began, here = (kernels_for(precision, kernels) for kernels in (recorded, kernels_here()))
    if here != began:
        yield f"compiled kernels: {', '.join(here) or 'none'}, it began with {', '.join(began) or 'none'}"


def _other_machine(run: RunDirectory, device: torch.device) -> Iterator[str]:
    if str(device) != run.recorded("device"):
        yield f"device {device}, it began on {run.recorded('device')}"
    began, here = run.recorded("hardware"), find_hardware(run.path)
    if here.cpu_model != began["cpu_model"] or list(here.cpu_flags or ()) != (began["cpu_flags"] or []):
        yield f"processor {here.cpu_model}, it began on {began['cpu_model']}"
    names = [gpu.name for gpu in here.gpus]
    recorded = [gpu["name"] for gpu in began["gpus"]]
    if device.type == "cuda" and names[device.index or 0] not in recorded:
        yield f"GPU {names[device.index or 0]}, it began on {recorded[0] if recorded else 'none'}"
