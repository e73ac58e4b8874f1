"""One stage of what `gpu.sh` measures: its result as JSON. `report` puts the stages together.

Every stage runs on a CPU too, where graphs are off and its numbers mean nothing: to try the script out.
"""

from __future__ import annotations

import argparse
import csv
import json
import signal
import statistics
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from atari_dqn.bench.kernels import synchronize
from atari_dqn.machine.devices import resolve_device
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble_without_actors
from atari_dqn.train.loop import q_learning
from atari_dqn.train.rate import measure_rate, small
from atari_dqn.train.training import Training
from gpu_rows import (
    AGENTS,
    COMPILED,
    EAGER,
    FRAMES,
    PONG,
    RUNS,
    TARGETS,
    TOLERANCE,
    TRACK_A,
    TRACK_B,
    UPDATES,
)
from hardware import circumstances
from spec_here import load_spec_here

import numpy as np
import torch

Share = Callable[[dict[str, Any]], None]
"""Writes what has been found so far: a stage may be cut short."""


def frames(device: torch.device, workers: int, seconds: float, share: Share) -> None:
    """Emulator frames/s of training after the prefill, and where the time went."""
    found: dict[str, Any] = {}
    for name, (path, envs, overrides) in FRAMES.items():
        found[name] = speed(path, device, envs, workers, seconds, overrides)
        share(found)


def agents(device: torch.device, workers: int, seconds: float, share: Share) -> None:
    """Emulator frames/s of the other agents' training; one that fails is reported, and the others go on."""
    found: dict[str, Any] = {}
    for name, (spec, envs, overrides) in AGENTS.items():
        try:
            found[name] = speed(RUNS / f"{spec}.toml", device, envs, workers, seconds, overrides)
        except Exception as error:
            traceback.print_exc()
            found[name] = {"error": f"{type(error).__name__}: {error}"}
        share(found)
    failed = [name for name, row in found.items() if "error" in row]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def speed(
    path: Path, device: torch.device, envs: int, workers: int, seconds: float, overrides: tuple[str, ...]
) -> dict[str, Any]:
    """Measure the training speed of a spec, with emulators in worker processes if it has several."""
    own = workers if envs > 1 else 0
    spec = spec_of(path, device, *overrides, f"env.num_envs={envs}", f"system.workers={own}")
    rate = measure_rate(spec, device, seconds=seconds)
    return {
        "frames_per_second": rate.frames_per_second,
        "updates_per_second": rate.updates_per_second,
        "shares": rate.shares,
        "emulators_busy_share": rate.emulators_busy_share,
    }


def updates(device: torch.device, workers: int, seconds: float, share: Share) -> None:
    """Microseconds of one update, sampling and priorities included: 16 in a row, and one alone."""
    del workers
    found: dict[str, Any] = {}
    for name, (path, overrides) in UPDATES.items():
        with learning(path, device, *overrides) as training:
            found[name] = {
                "together_us": microseconds(training, device, 16, seconds),
                "alone_us": microseconds(training, device, 1, seconds),
            }
            training.use_graphs(False)
            found[name]["without_graphs_us"] = microseconds(training, device, 16, seconds)
            found[name] |= kernels(training)
        share(found)


def compiled(device: torch.device, workers: int, seconds: float, share: Share) -> None:
    """Microseconds of an update whose kernels PyTorch has made, captured in graphs as the others are."""
    del workers
    found: dict[str, Any] = {}
    for name, (path, overrides) in COMPILED.items():
        began = time.perf_counter()
        with learning(path, device, *overrides, "learner.compile=true") as training:
            found[name] = {
                "ready_seconds": time.perf_counter() - began,
                "together_us": microseconds(training, device, 16, seconds),
                "alone_us": microseconds(training, device, 1, seconds),
                **kernels(training),
            }
        share(found)


def losses(device: torch.device, workers: int, seconds: float, share: Share) -> None:
    """Compare the losses of 1,000 updates with graphs and without, on equal replays."""
    del workers
    found: dict[str, Any] = {}
    count = 1_000 if seconds >= 1.0 else 20
    for name, path in (("Track A", TRACK_A), ("Track B", TRACK_B)):
        series = []
        for overrides in ((), (EAGER,)):
            with learning(path, device, *overrides, updates=0) as training:
                for _ in range(count // 10):
                    training.update(10)
                training.metrics.wait()
                total = training.metrics.count
                series.append(training.metrics.rows(total - count, total)[:, 0].astype(np.float64))
        difference = np.abs(series[0] - series[1]) / np.maximum(np.abs(series[1]), 1e-7)
        found[name] = {
            "updates": count,
            "equal_to_the_bit": int((series[0] == series[1]).sum()),
            "largest_relative_difference": float(difference.max()),
            "within_tolerance": bool(difference.max() <= TOLERANCE),
        }
        share(found)


def pong(device: torch.device, workers: int, seconds: float, share: Share) -> None:
    """Seconds from the start of `dqn train` to an evaluation of at least 18 on Pong, if it comes in time."""
    out = Path("gpu_pong_run")
    overrides = [*PONG, f"system.workers={workers}", "checkpoint.replay=false"]
    program = [sys.executable, "-c", "from atari_dqn.cli import main; main()"]
    command = [*program, "train", str(RUNS / "pong_quick.toml"), "--plain", "--run-dir", str(out)]
    options = [word for value in overrides for word in ("--set", value)]
    began = time.perf_counter()
    with Path(f"{out}.log").open("w") as log:
        process = subprocess.Popen([*command, *options, "--device", str(device)], stdout=log, stderr=log)
        try:
            while process.poll() is None and time.perf_counter() - began < seconds:
                time.sleep(0.5)
                rows = evaluations(out)
                won = next((row for row in rows if float(row["mean_return"]) >= 18), None)
                share(
                    {
                        "seconds": time.perf_counter() - began,
                        "seconds_to_18": time.perf_counter() - began if won else None,
                        "evaluations": [(int(row["env_frames"]), float(row["mean_return"])) for row in rows],
                    }
                )
                if won:
                    break
            if process.poll():
                sys.exit(f"dqn train ended with exit code {process.returncode}: see {log.name}")
        finally:
            process.kill()
            process.wait()


def evaluations(run: Path) -> list[dict[str, str]]:
    """Read the evaluations logged so far, complete lines only."""
    path = run / "eval_log.csv"
    if not path.exists():
        return []
    text = path.read_text()
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


def spec_of(path: Path, device: torch.device, *overrides: str) -> Spec:
    """Load a spec as `dqn train` would train it on a device."""
    return load_spec_here(path, overrides, device=str(device)).spec


@contextmanager
def learning(path: Path, device: torch.device, *overrides: str, updates: int = 32) -> Iterator[Training]:
    """Yield a training that has filled its replay, and has made so many updates."""
    spec = spec_of(path, device, *overrides, "env.num_envs=64", "system.workers=0")
    with closing(assemble_without_actors(small(spec), device)) as training:
        training.begin()
        for _ in q_learning(training):
            if training.clock.learning and training.clock.updates >= updates:
                break
        yield training


def microseconds(training: Training, device: torch.device, together: int, seconds: float) -> float:
    """Return the median time of an update over many goes of so many."""
    training.update(together)
    synchronize(device)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times:
        began = time.perf_counter()
        training.update(together)
        synchronize(device)
        times.append((time.perf_counter() - began) / together)
    return statistics.median(times) * 1e6


def kernels(training: Training) -> dict[str, Any]:
    """Count and time the kernels and copies of an update; `slowest`: name, number and µs of all of them."""
    kind = training.device.type.upper()
    activity = getattr(torch.profiler.ProfilerActivity, kind)
    with torch.profiler.profile(activities=[activity]) as profile:
        training.update_once()
        synchronize(training.device)
    started, spent = Counter[str](), Counter[str]()
    for event in profile.events():
        if event.device_type.name == kind:  # not CUDA's calls on the host
            started[event.name] += 1
            spent[event.name] += event.self_device_time_total or event.self_cpu_time_total
    slowest = [(name[:120], started[name], round(time_us, 1)) for name, time_us in spent.most_common(40)]
    return {"kernels": started.total(), "busy_us": round(spent.total(), 1), "slowest": slowest}


STAGES = {
    "frames": frames,
    "agents": agents,
    "updates": updates,
    "losses": losses,
    "pong": pong,
    "compiled": compiled,
}


def report(folder: Path) -> dict[str, Any]:
    """Collect the results of all finished stages, with the targets."""
    stages = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.stage.json"))}
    stages = {name.removesuffix(".stage"): found for name, found in stages.items()}
    reached = {
        **{
            name: row.get("frames_per_second")
            for stage in ("frames", "agents")
            for name, row in stages.get(stage, {}).items()
        },
        **{name: row["together_us"] for name, row in stages.get("updates", {}).items()},
        "seconds to 18": stages.get("pong", {}).get("seconds_to_18"),
    }
    where = circumstances()
    del where["others_cores"]  # those of this stage, which measures nothing
    return {
        **where,
        "ran": lines(folder / "stages.txt"),
        "tests": lines(folder / "tests.log")[-1:],
        "targets": {name: {"aim": aim, "found": reached.get(name)} for name, aim in TARGETS.items()},
        **stages,
    }


def lines(path: Path) -> list[str]:
    """Return a text's lines, none where there is no file."""
    return path.read_text().splitlines() if path.exists() else []


def main() -> None:
    """Run one stage, or put them together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=[*STAGES, "report"])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what it started ends too
    if options.stage == "report":
        text = json.dumps(report(options.folder), indent=2)
        (options.folder / "gpu.json").write_text(text + "\n")
        print(text)
        return
    path = options.folder / f"{options.stage}.stage.json"

    def share(found: dict[str, Any]) -> None:
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(found, indent=2) + "\n")
        partial.replace(path)

    STAGES[options.stage](resolve_device(options.device), options.workers, options.seconds, share)


if __name__ == "__main__":
    main()
