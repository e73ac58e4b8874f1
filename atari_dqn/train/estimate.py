"""How fast a spec trains on this machine, found out within a bounded time, whatever the spec.

A process of its own measures, and is ended when its time is over: one update of a large minibatch can take
longer than anybody wants to wait for an estimate. `python -m atari_dqn.train.estimate DEVICE SECONDS` is that
process; it reads a spec's values as JSON.
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

from atari_dqn.errors import UserError
from atari_dqn.spec.keys import build, flatten
from atari_dqn.spec.schema import Spec

_MEASURE = ("-m", "atari_dqn.train.estimate")
_MEASURED_SECONDS = 1.5
_MOST_ENVS = 64
"""Making more environments takes longer than there is time; past this many the rate hardly changes."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Emulator frames a second, None where the time was not enough, and what that rests on."""

    frames_per_second: float | None
    basis: str


def estimate_rate(spec: Spec, device: str, *, within_seconds: float) -> Estimate:
    """Return how fast `spec` trains on `device`. `UserError` where it cannot be trained here at all."""
    measured, changes = cheaper(spec)
    answer = _ask(measured, device, within_seconds)
    if answer is None:
        return Estimate(
            frames_per_second=None,
            basis=f"no rate could be measured within {within_seconds:.0f} s; `dqn bench` takes longer",
        )
    if "error" in answer:
        raise UserError(answer["error"])
    basis = ", ".join(["measured here just now", *changes])
    return Estimate(frames_per_second=float(answer["frames_per_second"]), basis=basis)


def cheaper(spec: Spec) -> tuple[Spec, tuple[str, ...]]:
    """Return the spec without what takes minutes before the first update, and what was changed."""
    changes = []
    if spec.env.num_envs > _MOST_ENVS:
        changes.append(f"with {_MOST_ENVS} environments in place of {spec.env.num_envs:,}")
        workers = min(spec.system.workers, _MOST_ENVS)
        spec = replace(
            spec, env=replace(spec.env, num_envs=_MOST_ENVS), system=replace(spec.system, workers=workers)
        )
    if spec.learner.compile:
        changes.append("not compiled")
        spec = replace(spec, learner=replace(spec.learner, compile=False))
    return spec, tuple(changes)


def _ask(spec: Spec, device: str, within_seconds: float) -> dict[str, str | float] | None:
    """Return the measuring process's answer; None where it had none in time."""
    command = [sys.executable, *_MEASURE, device, str(_MEASURED_SECONDS)]
    with _process_group(command) as process:
        try:
            out, errors = process.communicate(json.dumps(flatten(spec)), timeout=within_seconds)
        except subprocess.TimeoutExpired:
            return None
    if process.returncode != 0:
        raise RuntimeError(f"measuring the rate failed:\n{errors}")
    answer: dict[str, str | float] = json.loads(out.splitlines()[-1])
    return answer


@contextmanager
def _process_group(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that leads a group of its own; the group, workers included, ends with the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - no shell
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError, PermissionError):  # it may have ended by itself
                os.killpg(process.pid, signal.SIGKILL)


def main(device_name: str, seconds: float) -> None:
    """Measure the spec that stands on standard input and print the answer."""
    from atari_dqn.machine.devices import resolve_device
    from atari_dqn.train.rate import measure_rate

    spec = build(json.load(sys.stdin))
    try:
        rate = measure_rate(spec, resolve_device(device_name), seconds=seconds)
    except UserError as error:
        answer: dict[str, str | float] = {"error": str(error)}
    else:
        answer = {"frames_per_second": rate.frames_per_second}
    print(json.dumps(answer))  # noqa: T201 - the process that started this one reads it


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
