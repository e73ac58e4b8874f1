"""Estimate the training speed of a spec on this machine within a bounded time.

A separate process measures and is killed after a timeout, because a single update of a large minibatch can
take too long. `python -m atari_dqn.train.estimate DEVICE SECONDS PARENT_PID` is that process; it reads the
values of a spec as JSON from standard input.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from atari_dqn.envs.processes import end_with_parent, own_command
from atari_dqn.errors import InfrastructureError, UserError
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.keys import build, flatten
from atari_dqn.spec.schema import Spec

_MEASURED_SECONDS = 1.5
_MOST_ENVS = 64
"""Creating more environments takes too long; beyond this number the rate hardly changes."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Emulator frames per second, None after a timeout, and the basis of the estimate as text."""

    frames_per_second: float | None
    basis: str


def estimate_rate(spec: Spec, device: str, *, within_seconds: float) -> Estimate:
    """Measure the training speed of a spec; raise `UserError` if it cannot be trained on this machine."""
    measured, changes = cheaper(spec)
    result = _run_measurement(measured, device, within_seconds)
    if result is None:
        return Estimate(
            frames_per_second=None,
            basis=f"no rate could be measured within {within_seconds:.0f} s; `dqn bench` takes longer",
        )
    if "error" in result:
        raise UserError(result["error"])
    basis = ", ".join(["measured here just now", *changes])
    return Estimate(frames_per_second=float(result["frames_per_second"]), basis=basis)


def cheaper(spec: Spec) -> tuple[Spec, tuple[str, ...]]:
    """Replace what would take minutes before the first update; return the spec and the changes as text."""
    changes = []
    if spec.env.num_envs > _MOST_ENVS:
        fewer = _with_fewer_environments(spec)
        changes.append(f"with {fewer.env.num_envs} environments in place of {spec.env.num_envs:,}")
        if spec.actors.processes != fewer.actors.processes:
            changes.append(f"with {fewer.actors.processes} actors in place of {spec.actors.processes}")
        spec = fewer
    if decided(spec.learner.compile):
        changes.append("not compiled")
        spec = replace(spec, learner=replace(spec.learner, compile=False))
    return spec, tuple(changes)


def _with_fewer_environments(spec: Spec) -> Spec:
    """Return the spec with at most `_MOST_ENVS` environments, of which fewer actors play as many each."""
    workers = min(decided(spec.system.workers), _MOST_ENVS)
    spec = replace(spec, system=replace(spec.system, workers=workers))
    if spec.actors.processes is None:
        fewer = _MOST_ENVS
        if spec.replay.kind == "rollouts":  # which are as many whole steps of all environments
            fewer = next(
                number for number in range(_MOST_ENVS, 0, -1) if spec.replay.capacity_steps % number == 0
            )
        return replace(spec, env=replace(spec.env, num_envs=fewer))
    each = min(spec.env.num_envs // spec.actors.processes, _MOST_ENVS)
    processes = _MOST_ENVS // each
    return replace(
        spec,
        env=replace(spec.env, num_envs=processes * each),
        actors=replace(spec.actors, processes=processes),
    )


def _run_measurement(spec: Spec, device: str, within_seconds: float) -> dict[str, str | float] | None:
    """Run the measuring process and return its result; None after a timeout."""
    command = [*own_command("atari_dqn.train.estimate"), device, str(_MEASURED_SECONDS), str(os.getpid())]
    with _process_group(command) as process:
        try:
            out, errors = process.communicate(json.dumps(flatten(spec)), timeout=within_seconds)
        except subprocess.TimeoutExpired:
            return None
    if process.returncode < 0:
        raise InfrastructureError(
            f"the process that measures the rate was killed by signal {-process.returncode}, perhaps because "
            "the machine is out of memory"
        )
    if process.returncode != 0:
        raise RuntimeError(f"measuring the rate failed:\n{errors}")
    result: dict[str, str | float] = json.loads(out.splitlines()[-1])
    return result


@contextmanager
def _process_group(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a process in a group of its own; kill the group, workers included, at the end of the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - no shell
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError, PermissionError):  # it may have ended already
                os.killpg(process.pid, signal.SIGKILL)


def main(device_name: str, seconds: float, parent: int) -> None:
    """Measure the spec given on standard input, and print the result; end if the process `parent` does."""
    end_with_parent(parent)
    from atari_dqn.machine.devices import resolve_device
    from atari_dqn.train.rate import measure_rate

    spec = build(json.load(sys.stdin))
    try:
        rate = measure_rate(spec, resolve_device(device_name), seconds=seconds)
    except UserError as error:
        result: dict[str, str | float] = {"error": str(error)}
    else:
        result = {"frames_per_second": rate.frames_per_second}
    print(json.dumps(result))  # noqa: T201 - read by the parent process


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
