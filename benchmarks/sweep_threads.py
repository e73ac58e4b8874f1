"""Train two runs at once with a thread each, and the same two one after the other with two threads; compare.

Both are sweeps of Track A on Pong with two seeds and no evaluations: `threads = 1`, which is the default and
lets two runs be trained at once on two cores, and `threads = 2`. Each sweep is timed as a whole, from the
command to its end; the speed of training alone, of both runs together where they run at once, is from their
own tables. The two ways take turns. Prints a line a sweep and writes JSON to --out.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hardware import circumstances

DQN = (sys.executable, "-m", "atari_dqn")
PREFILL_STEPS, FRAMES_PER_STEP = 1_000, 4
SWEEP = """
spec = "pong_trackA"
seeds = 2
threads = {threads}

[set]
replay.capacity_steps = 50_000
replay.prefill_steps = {prefill_steps}
training.total_frames = {frames}
evaluation.light_period_frames = {never}
evaluation.full_period_frames = {never}
checkpoint.period_frames = 0
logging.update_period_steps = 500
evaluation.light_episodes = 1
evaluation.full_episodes = 1
evaluation.max_episode_frames = 1_000
system.evaluation_video = false
"""
WAYS = {"two at once, one thread each": 1, "one after the other, two threads": 2}


def swept(folder: Path, threads: int, frames: int) -> dict[str, Any]:
    """Train both runs; return the seconds of the whole sweep, and the frames per second of its training."""
    folder.mkdir()
    path = folder / "two.toml"
    text = SWEEP.format(threads=threads, prefill_steps=PREFILL_STEPS, frames=frames, never=10 * frames)
    path.write_text(text)
    began = time.monotonic()
    subprocess.run(
        [*DQN, "sweep", str(path), "--device", "cpu", "--folder", str(folder / "runs"), "--plain"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    seconds = time.monotonic() - began
    rates = [training_rate(run.parent) for run in sorted((folder / "runs").glob("*/summary.json"))]
    return {
        "seconds": round(seconds, 1),
        "frames_per_second": round(2 * frames / seconds, 1),
        "training_frames_per_second": round(sum(rates) if threads == 1 else statistics.mean(rates), 1),
    }


def training_rate(run: Path) -> float:
    """Return the median speed of a run's rows after the first."""
    with (run / "throughput_log.csv").open() as file:
        rates = [float(row["frames_per_second"]) for row in csv.DictReader(file)]
    return round(statistics.median(rates[1:]), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--frames", type=int, default=24_000)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(arguments.rounds):
            rounds.append({})
            for way, threads in WAYS.items():
                rounds[-1][way] = swept(Path(name) / f"{number}_{threads}", threads, arguments.frames)
                print(way, rounds[-1][way], flush=True)
    medians = {
        way: {key: statistics.median(each[way][key] for each in rounds) for key in rounds[0][way]}
        for way in WAYS
    }
    first, second = (each["seconds"] for each in medians.values())
    found = {
        "frames_of_each_run": arguments.frames,
        "medians": medians,
        "seconds_in_turn_over_seconds_at_once": round(second / first, 3),
        "rounds": rounds,
    }
    arguments.out.write_text(json.dumps({**found, **circumstances()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
