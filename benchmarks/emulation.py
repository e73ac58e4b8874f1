"""Emulation alone: our worker pool beside `ale_py.AtariVectorEnv` in one run, taking turns.

Both play 16 Pong emulators with random actions, frame skip 4, the maximum of two grey frames and 84×84
area resize. Ours writes one frame a step; theirs is asked for a stack of one, so that neither copies stacks.
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


def frames_per_second(step: Step, actions: np.ndarray, seconds: float) -> float:
    """Return emulator frames a second over all lanes, resets' rows counted by both alike."""
    for action in actions[:WARM_UP_STEPS]:
        step(action)
    steps, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        step(actions[steps % len(actions)])
        steps += 1
    return steps * actions.shape[1] * FRAME_SKIP / elapsed


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

    ours_by_round, theirs_by_round, raw_by_round = [], [], []
    for _ in range(rounds):
        ours_by_round.append(frames_per_second(step_ours, actions, seconds))
        theirs_by_round.append(frames_per_second(vector.step, actions, seconds))
        raw_by_round.append(raw_frames_per_second(game, seconds / 2))
    lanes.close()
    vector.close()
    return {
        "ours_frames_per_second": ours_by_round,
        "atari_vector_env_frames_per_second": theirs_by_round,
        "raw_ale_frames_per_second_of_one_core": raw_by_round,
        "median_ours": statistics.median(ours_by_round),
        "median_atari_vector_env": statistics.median(theirs_by_round),
        "median_raw_one_core": statistics.median(raw_by_round),
        "median_ratio": statistics.median(
            mine / other for mine, other in zip(ours_by_round, theirs_by_round, strict=True)
        ),
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
    settings = {"game": options.game, "lanes": options.lanes, "workers": options.workers}
    result = measure(**settings_of(options))
    report = {"settings": settings, "hardware": hardware(), **result}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


def settings_of(options: argparse.Namespace) -> dict[str, object]:
    return {
        "game": options.game,
        "num_lanes": options.lanes,
        "workers": options.workers,
        "rounds": options.rounds,
        "seconds": options.seconds,
    }


if __name__ == "__main__":
    main()
