"""Emulation alone: our worker pool beside `ale_py.AtariVectorEnv` in one run, taking turns.

Both play 16 Pong emulators with random actions, frame skip 4, the maximum of two grey frames and 84×84
area resize. Ours writes one frame a step; theirs is asked for a stack of one, so that neither copies stacks.
Frames per CPU-second (all processes and threads, as the kernel counts them) say what a busy machine hides.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import psutil
from ale_py import ALEInterface, LoggerMode
from ale_py.roms import get_rom_path
from ale_py.vector_env import AtariVectorEnv

from atari_dqn.envs.registry import make_lanes
from atari_dqn.spec.schema import Env

FRAME_SKIP = 4
MAX_EPISODE_FRAMES = 108_000
NOOP_MAX_FRAMES = 30
WARM_UP_STEPS = 20

Step = Callable[[np.ndarray], object]


def spec(num_lanes: int) -> Env:
    return Env(
        kind="atari",
        lanes=num_lanes,
        frame_skip=FRAME_SKIP,
        screen_size_pixels=84,
        resize="area",
        stack_frames=4,
        sticky_probability=0.0,
        noop_max_frames=NOOP_MAX_FRAMES,
        max_episode_frames=MAX_EPISODE_FRAMES,
        terminal_on_life_loss=False,
        full_action_set=False,
    )


def theirs(game: str, num_lanes: int, threads: int) -> AtariVectorEnv:
    return AtariVectorEnv(
        game,
        num_lanes,
        num_threads=threads,
        frameskip=FRAME_SKIP,
        stack_num=1,
        noop_max=NOOP_MAX_FRAMES,
        max_num_frames_per_episode=MAX_EPISODE_FRAMES,
        reward_clipping=False,
        use_fire_reset=False,
    )


def cpu_seconds() -> float:
    """Return the processor time of this process and of its living children."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children())]
    return sum(time.user + time.system for time in times)


def speeds(step: Step, actions: np.ndarray, seconds: float) -> tuple[float, float]:
    """Return emulator frames per second and per CPU-second; both sides' resets count as a step."""
    for action in actions[:WARM_UP_STEPS]:
        step(action)
    steps, used, started = 0, cpu_seconds(), time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        step(actions[steps % len(actions)])
        steps += 1
    frames = steps * actions.shape[1] * FRAME_SKIP
    return frames / elapsed, frames / (cpu_seconds() - used)


def raw_frames_per_second(game: str, seconds: float) -> float:
    """Return how many frames one core emulates when nothing else is done with them."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(get_rom_path(game))
    ale.reset_game()
    actions = ale.getMinimalActionSet()
    frames, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        ale.act(actions[frames // FRAME_SKIP % len(actions)])
        frames += 1
        if ale.game_over():
            ale.reset_game()
    return frames / elapsed


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def hardware() -> dict[str, object]:
    packages = ("ale-py", "gymnasium", "numpy", "opencv-python-headless")
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def measure(game: str, num_lanes: int, workers: int, rounds: int, seconds: float) -> dict[str, object]:
    lanes = make_lanes(
        game=game, env=spec(num_lanes), num_lanes=num_lanes, seed=1, stream="bench", workers=workers
    )
    vector = theirs(game, num_lanes, workers)
    actions = np.random.default_rng(0).integers(0, lanes.info.num_actions, (1_000, num_lanes))
    lanes.reset()
    vector.reset(seed=1)

    def step_ours(action: np.ndarray) -> None:
        lanes.send(action)
        lanes.recv()

    ours, other, raw = [], [], []
    for _ in range(rounds):
        ours.append(speeds(step_ours, actions, seconds))
        other.append(speeds(vector.step, actions, seconds))
        raw.append(raw_frames_per_second(game, seconds / 2))
    lanes.close()
    vector.close()
    return {
        "per_second": compared([speed for speed, _ in ours], [speed for speed, _ in other]),
        "per_cpu_second": compared([speed for _, speed in ours], [speed for _, speed in other]),
        "raw_ale_per_second_of_one_core": {"rounds": raw, "median": statistics.median(raw)},
    }


def compared(ours: list[float], other: list[float]) -> dict[str, object]:
    return {
        "ours": ours,
        "atari_vector_env": other,
        "median_ours": statistics.median(ours),
        "median_atari_vector_env": statistics.median(other),
        "median_ratio": statistics.median(mine / theirs for mine, theirs in zip(ours, other, strict=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--game", default="pong")
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2, help="our processes, and their threads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement")
    options = parser.parse_args()
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    result = measure(options.game, options.lanes, options.workers, options.rounds, options.seconds)
    report = {"settings": settings, "hardware": hardware(), **result}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
