"""The most memory that a whole training run holds at once: `dqn train` with a replay of 1,000,000 steps.

A spec is trained as a user trains it: eight environments in two worker processes play at random until the
replay is full, then the agent learns while a checkpoint of the whole replay is written, and the run ends with
an evaluation, its video and a second checkpoint. Only how long each part lasts differs from the spec; a frame
skip of 1 makes the filling four times as fast and no row of the replay smaller.

Two figures. `peak_bytes` is the sum over all processes of each one's own highest resident size, as the kernel
counted it (`VmHWM` in /proc): no moment is missed, but the peaks need not have come together and shared pages
count once per process, so the run never held more than that. `sampled_peak_bytes` is the largest sum of
proportional sizes seen at one moment, twice a second, where shared pages count once. Linux alone has both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from hardware import circumstances

import psutil

TRACK_A = Path(__file__).parents[1] / "runs/pong_trackA.toml"
ENVS, WORKERS = 8, 2
SAMPLE_SECONDS = 0.5
LEARNING_STEPS = 2_000
"""Learned from before the first checkpoint, and as many again while it is written and after."""
EVALUATION_EPISODES, EVALUATION_FRAMES = 10, 1_000
PROMISED_BYTES = 8_500_000_000


def overrides(capacity_steps: int) -> dict[str, object]:
    """Set the keys with which a short run fills its replay, learns from it and saves it."""
    return {
        "env.num_envs": ENVS,
        "env.frame_skip": 1,  # so that a step is a frame
        "system.workers": WORKERS,
        "replay.capacity_steps": capacity_steps,
        "replay.prefill_steps": capacity_steps,
        "training.total_frames": capacity_steps + 2 * LEARNING_STEPS,
        "logging.replay_period_steps": LEARNING_STEPS,
        "evaluation.light_period_frames": capacity_steps + 2 * LEARNING_STEPS,
        "evaluation.full_period_frames": capacity_steps + LEARNING_STEPS,
        "evaluation.full_episodes": EVALUATION_EPISODES,
        "evaluation.max_episode_frames": EVALUATION_FRAMES,
    }


def command(spec: Path, run: Path, capacity_steps: int) -> list[str]:
    sets = [word for key, value in overrides(capacity_steps).items() for word in ("--set", f"{key}={value}")]
    program = "from atari_dqn.cli import main; main()"
    options = ["--run-dir", str(run), "--device", "cpu", "--plain"]
    return [sys.executable, "-c", program, "train", str(spec), *options, *sets]


class MemoryMonitor:
    """Looks at a process and its descendants, and keeps the most that each and all of them held."""

    def __init__(self, root: psutil.Process) -> None:
        self.root = root
        self.peaks: dict[int, int] = {}
        """By process ID, its highest resident size in bytes."""
        self.sampled_peak_bytes = 0
        self.most_processes = 0

    def look(self) -> None:
        processes = [self.root, *self.root.children(recursive=True)]
        shares = [share for process in processes if (share := self._look_at(process))]
        self.sampled_peak_bytes = max(self.sampled_peak_bytes, sum(shares))
        self.most_processes = max(self.most_processes, len(shares))

    def _look_at(self, process: psutil.Process) -> int:
        """Note a process's peak and return its proportional size; 0 where it has ended meanwhile."""
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            share: int = process.memory_full_info().pss
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            return 0
        fields = dict(line.split(":", 1) for line in status.splitlines())
        if "VmHWM" in fields:  # a process that has ended and is not yet waited for has none
            self.peaks[process.pid] = int(fields["VmHWM"].split()[0]) * 1024
        return share


def measure(spec: Path, capacity_steps: int, folder: Path, *, threads: int) -> dict[str, object]:
    """Train, watching; return the peaks and what the run did. `CalledProcessError` where it failed."""
    run, began = folder / "run", time.perf_counter()
    words = command(spec, run, capacity_steps)
    with subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": str(threads)}) as training:
        monitor = MemoryMonitor(psutil.Process(training.pid))
        while training.poll() is None:
            monitor.look()
            time.sleep(SAMPLE_SECONDS)
    if training.returncode:
        raise subprocess.CalledProcessError(training.returncode, words)
    peaks = sorted(monitor.peaks.values(), reverse=True)
    return {
        "capacity_steps": capacity_steps,
        "torch_threads": threads,
        "overrides": overrides(capacity_steps),
        "seconds": time.perf_counter() - began,
        "peak_bytes": sum(peaks),
        "sampled_peak_bytes": monitor.sampled_peak_bytes,
        "peak_bytes_by_process": peaks,
        "most_processes_at_once": monitor.most_processes,
        "promised_bytes": PROMISED_BYTES,
        **found(run),
    }


def found(run: Path) -> dict[str, object]:
    """Read from the run's logs that the replay was full, was learned from, and was saved."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    head, *rows = (run / "replay_log.csv").read_text().splitlines()
    newest = dict(zip(head.split(","), rows[-1].split(","), strict=True))
    return {
        "transitions": int(newest["transitions"]),
        "events": [
            f"{event['step']}: {event['kind']}: {event['message']}"
            for event in events
            if event["kind"] in {"evaluation", "checkpoint", "video", "finished"}
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--spec", type=Path, default=TRACK_A)
    parser.add_argument("--capacity-steps", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        figures = measure(options.spec, options.capacity_steps, Path(folder), threads=options.threads)
    report = {**circumstances(), "spec": options.spec.name, **figures}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
