"""A process that has imported everything and done nothing, and forks one that trains for each order it reads.

An order is a line of JSON; the answers are the child's process id, then, once it has ended, its wait status.
In between the child writes a dot for each event of its run. It leads a process group of its own, so that it
can be killed with its workers. Imports take most of a short run's time: this spares them.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atari_dqn.machine.devices import resolve_device
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.replay import rows
from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.loader import load_spec
from atari_dqn.telemetry.events import Event
from atari_dqn.train import launch


def die_at(point: str, call: int) -> None:
    """Have the process group killed at the given call of a function, named as `module:function`."""
    module, _, path = point.partition(":")
    holder: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        holder = getattr(holder, part)
    setattr(holder, name, _dying(getattr(holder, name), call))


def _dying(function: Callable[..., Any], call: int) -> Callable[..., Any]:
    calls = 0

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            os.killpg(0, signal.SIGKILL)
        return function(*args, **kwargs)

    return dying


def make_pieces_small() -> None:
    """Have a small replay fill whole pieces, which checkpoints share. Digests rest on their size."""
    rows.PIECE_FRAMES = 128


class Dots:
    """A view that shows each event as a dot."""

    def handle(self, event: Event) -> None:
        os.write(sys.stdout.fileno(), b".")

    def close(self) -> None:
        pass


def train(order: dict[str, Any]) -> None:
    """Begin the run of an order, or go on with it if it is there."""
    make_pieces_small()
    if order["point"]:
        die_at(order["point"], order["call"])
    path, device = Path(order["run_dir"]), resolve_device("cpu")
    if (path / "spec.toml").exists():
        run = RunDirectory.open(path)
        launch.resume(run, device=device, views=[Dots()], total_frames=order["frames"])
    else:
        resolved = load_spec(order["spec"], [*order["overrides"], "learner.threads=1"])
        origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(path))
        launch.start(resolved, path, device=device, views=[Dots()], origin=origin)


def child(order: dict[str, Any]) -> None:
    os.setsid()
    try:
        train(order)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def report(answer: object) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


def main() -> None:
    importlib.import_module("torch._dynamo")  # which PyTorch's optimizers import when they are made
    report("ready")
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            child(json.loads(line))
        while os.getpgid(process) != process:  # until then its group is not to be killed
            time.sleep(0.001)
        report(process)
        report(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    main()
