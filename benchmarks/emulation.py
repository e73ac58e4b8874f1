"""Emulation alone: our worker pool, the bare emulator and `ale_py.AtariVectorEnv` in one run, taking turns.

Ours and theirs play 16 games of Pong with random actions and frame skip 4, and scale the maximum of two grey
frames to 84×84 pixels by area. Ours writes one frame in each step; theirs is set to stack one frame, so that
neither copies stacks. Frames per CPU-second (all processes and threads, as the kernel counts them) say what a
busy machine hides.

The bare emulator is the ceiling: the same environments and actions played by `act` alone, no screen read,
no process waits for another. "All at once" are as many processes as we have workers; "one alone" is one of
them, times their number, for a core that is busy alone may clock higher. Quote the share of the first.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from atari_dqn.envs.games import make_envs
from atari_dqn.envs.pool import split_envs
from atari_dqn.spec.schema import Env
from hardware import circumstances

import numpy as np
import psutil
from ale_py import ALEInterface, LoggerMode
from ale_py.roms import get_rom_path
from ale_py.vector_env import AtariVectorEnv

FRAME_SKIP = 4
MAX_EPISODE_FRAMES = 108_000
NOOP_MAX_FRAMES = 30
WARM_UP_STEPS = 20

Step = Callable[[np.ndarray], object]


def spec(num_envs: int) -> Env:
    return Env(
        kind="atari",
        num_envs=num_envs,
        frame_skip=FRAME_SKIP,
        screen_size_pixels=84,
        resize="area",
        stack_frames=4,
        sticky_probability=0.0,
        flicker_probability=0.0,
        noop_max_frames=NOOP_MAX_FRAMES,
        max_episode_frames=MAX_EPISODE_FRAMES,
        terminal_on_life_loss=False,
        life_loss_ends_skip=False,
        full_action_set=False,
    )


def theirs(game: str, num_envs: int, threads: int) -> AtariVectorEnv:
    return AtariVectorEnv(
        game,
        num_envs,
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


class BareEnvironments:
    """Emulators that play and are not looked at."""

    def __init__(self, game: str, num_envs: int) -> None:
        ALEInterface.setLoggerMode(LoggerMode.Error)
        rom = get_rom_path(game)
        assert rom is not None, f"ale-py has no ROM of {game}"
        self._emulators = [ALEInterface() for _ in range(num_envs)]
        for ale in self._emulators:
            ale.setFloat("repeat_action_probability", 0.0)
            ale.loadROM(rom)
            ale.reset_game()
        self._actions = self._emulators[0].getMinimalActionSet()

    def step(self, actions: np.ndarray) -> None:
        for ale, index in zip(self._emulators, actions.tolist(), strict=True):
            action = self._actions[index]
            for _ in range(FRAME_SKIP):
                ale.act(action)
            if ale.game_over():
                ale.reset_game()


def play_bare(pipe: Connection, game: str, actions: np.ndarray) -> None:
    """Receive numbers of seconds and send the `speeds` over each, until None is received."""
    envs = BareEnvironments(game, actions.shape[1])
    while (seconds := pipe.recv()) is not None:
        pipe.send(speeds(envs.step, actions, seconds))


class BareProcesses:
    """The ceiling: processes that each play their share of the environments."""

    def __init__(self, game: str, actions: np.ndarray, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        for envs in split_envs(actions.shape[1], count):
            ours, other = context.Pipe()
            share = actions[:, envs.start : envs.stop]
            context.Process(target=play_bare, args=(other, game, share), daemon=True).start()
            self._pipes.append(ours)

    def speeds(self, seconds: float, processes: int) -> tuple[float, float]:
        """Run this number of processes at once: frames per second, added up, and per CPU-second."""
        playing = self._pipes[:processes]
        for pipe in playing:
            pipe.send(seconds)
        per_second, per_cpu_second = zip(*(pipe.recv() for pipe in playing), strict=True)
        return sum(per_second), statistics.mean(per_cpu_second)

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.send(None)


def measure(game: str, num_envs: int, workers: int, rounds: int, seconds: float) -> dict[str, object]:
    envs = make_envs(
        game=game, env=spec(num_envs), num_envs=num_envs, seed=1, stream="bench", workers=workers
    )
    vector = theirs(game, num_envs, workers)
    actions = np.random.default_rng(0).integers(0, envs.info.num_actions, (1_000, num_envs))
    bare = BareProcesses(game, actions, workers)
    envs.reset()
    vector.reset(seed=1)

    def step_ours(action: np.ndarray) -> None:
        envs.send(action)
        envs.recv()

    played: dict[str, list[tuple[float, float]]] = {
        "ours": [],
        "atari_vector_env": [],
        "bare_all_at_once": [],
        "bare_one_alone": [],
    }
    for _ in range(rounds):
        played["bare_all_at_once"].append(bare.speeds(seconds, workers))
        played["ours"].append(speeds(step_ours, actions, seconds))
        played["atari_vector_env"].append(speeds(vector.step, actions, seconds))
        per_second, per_cpu_second = bare.speeds(seconds / 2, 1)
        played["bare_one_alone"].append((per_second * workers, per_cpu_second))
    envs.close()
    vector.close()
    bare.close()
    return {
        "per_second": compared({name: [pair[0] for pair in pairs] for name, pairs in played.items()}),
        "per_cpu_second": compared({name: [pair[1] for pair in pairs] for name, pairs in played.items()}),
    }


def compared(rounds: dict[str, list[float]]) -> dict[str, object]:
    """Return every round, the medians, and the median of ours as a multiple of each other."""
    return {
        "rounds": rounds,
        "medians": {name: statistics.median(figures) for name, figures in rounds.items()},
        "median_ratio_of_ours_to": {
            name: median_ratio(rounds["ours"], figures) for name, figures in rounds.items() if name != "ours"
        },
    }


def median_ratio(ours: list[float], other: list[float]) -> float:
    """Return the median of the rounds' ratios: a machine's moods reach both sides of a round."""
    return statistics.median(mine / theirs for mine, theirs in zip(ours, other, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--game", default="pong")
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2, help="our processes, bare ones, and their threads")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement")
    options = parser.parse_args()
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    result = measure(options.game, options.envs, options.workers, options.rounds, options.seconds)
    report = {"settings": settings, **circumstances(), **result}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
