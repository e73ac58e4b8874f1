"""What the sinks cost a training: processor time on their threads and in W&B's own process, and the whole.

Processor time, not frames/s with and without: a difference of 1 % drowns in the noise of two runs. Starting
(imports, W&B's process) is paid once, and separated from what each 1,000 steps cost.
`share` has rows at their period, and one final evaluation with checkpoint and video at the spec's period.
"""

import argparse
import json
import os
import tempfile
import time
from functools import partial
from pathlib import Path

from atari_dqn.machine.hardware import find_hardware
from atari_dqn.telemetry.events import Event, Notice, Row, Sink
from atari_dqn.telemetry.sinks.options import SINKS, MakeSink, SinkOptions
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.train import launch
from hardware import circumstances
from spec_here import load_spec_here

import psutil
import torch

SPEC = Path(__file__).parents[1] / "runs" / "pong_quick.toml"
NAMES = ("tensorboard", "wandb", "parquet")


class Timed:
    """A sink with the processor time of its thread: after its first event, and at its end."""

    found: dict[str, dict[str, float]]

    def __init__(self, name: str, make: MakeSink, target: Target) -> None:
        self._name, self._sink, self._started = name, make(target), False

    def handle(self, event: Event) -> None:
        before = time.thread_time()
        self._sink.handle(event)
        if not self._started:
            self._started = True
            Timed.found[self._name] = {"start": time.thread_time(), "rows": 0.0, "notices": 0.0}
        else:
            kind = "rows" if isinstance(event, Row) else "notices"
            Timed.found[self._name][kind] += time.thread_time() - before

    def close(self) -> None:
        before = time.thread_time()
        self._sink.close()
        Timed.found[self._name]["close"] = time.thread_time() - before


class Children:
    """A view that looks, at the end of the training, at the processor time of W&B's own process."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def handle(self, event: Event) -> None:
        if isinstance(event, Notice) and event.kind == "finished":
            times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
            self.seconds = sum(each.user + each.system for each in times)

    def close(self) -> None:
        pass


def measure(frames: int) -> dict[str, object]:
    Timed.found = {}
    load = SINKS.load
    SINKS.load = lambda name: partial(Timed, name, load(name))  # type: ignore[method-assign]
    overrides = [
        f"training.total_frames={frames}",
        "replay.prefill_steps=1000",
        "system.workers=0",
        "learner.threads=1",
        "evaluation.light_period_frames=1000000",
    ]
    resolved = load_spec_here(SPEC, overrides)
    children = Children()
    views: list[Sink] = [children]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        origin = launch.Origin(command_line=["benchmark"], hardware=find_hardware(Path(folder)))
        before = time.process_time()
        sink_options = SinkOptions(sinks=NAMES)
        launch.start(
            resolved, path, device=torch.device("cpu"), views=views, origin=origin, sink_options=sink_options
        )
        whole = time.process_time() - before
    total = {kind: sum(each[kind] for each in Timed.found.values()) for kind in ("start", "rows", "notices")}
    training = whole - sum(total.values())
    period_frames = load_spec_here(SPEC).spec.evaluation.full_period_frames
    per_frame = total["rows"] / frames + total["notices"] / period_frames
    return {
        "frames": frames,
        "training_cpu_seconds": training,
        "sinks_cpu_seconds": Timed.found,
        "wandb_process_cpu_seconds": children.seconds,
        "rows_share": total["rows"] / training,
        "full_evaluation_period_frames": period_frames,
        "share": per_frame / (training / frames),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=60_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    os.environ["WANDB_MODE"] = "offline"
    figures = measure(arguments.frames)
    result = {**circumstances(), **figures}
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
