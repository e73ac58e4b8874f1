"""The memory of a full replay: resident bytes measured, and the prediction of `dqn train --plan`.

Steps of random noise, which no page can be shared for, go through `ReplayBuffer.append` until every row was
written. Eight environments, because that fills it eight times as fast; the bytes of a transition are the
same.
"""

import argparse
import json
import time
from pathlib import Path

from atari_dqn.machine.sizes import replay_bytes
from atari_dqn.replay.buffer import ReplayBuffer, ring_rows
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.types import StepBatch
from hardware import circumstances

import numpy as np
import psutil
import torch

SCREEN_SIZE_PIXELS = 84
ENVS = 8
STACK_FRAMES = 4
BATCH_SIZE = 32
EPISODE_ROWS = 1_000
CPU = torch.device("cpu")


def build(capacity_steps: int) -> ReplayBuffer:
    rows = ring_rows(capacity_steps=capacity_steps, envs=ENVS, stack=STACK_FRAMES, n_step=1)
    frame_shape = (SCREEN_SIZE_PIXELS, SCREEN_SIZE_PIXELS)
    ring = FrameRing(rows=rows, num_envs=ENVS, frame_shape=frame_shape, stack=STACK_FRAMES, device=CPU)
    sampler = UniformSampler(capacity=rows * ENVS, batch_size=BATCH_SIZE, seed=0, device=CPU)
    return ReplayBuffer(ring, sampler, n_step=1, gamma=0.99, max_abs_reward=1.0)


def noise(generator: np.random.Generator, row: int) -> StepBatch:
    none = np.zeros(ENVS, dtype=bool)
    shape = (ENVS, SCREEN_SIZE_PIXELS, SCREEN_SIZE_PIXELS)
    return StepBatch(
        frame=generator.integers(256, size=shape, dtype=np.uint8),
        reward=np.zeros(ENVS),
        terminated=none,
        truncated=none,
        life_lost=none,
        first=np.full(ENVS, row % EPISODE_ROWS == 0),
    )


def fill(replay: ReplayBuffer) -> None:
    """Write every row, and sample once a thousand rows, as training would."""
    generator = np.random.default_rng(0)
    actions, discount = np.zeros(ENVS, dtype=np.int64), np.ones(ENVS)
    replay.begin(noise(generator, 0))
    for row in range(1, replay.ring.rows + STACK_FRAMES + 1):
        replay.append(actions, discount, noise(generator, row))
        if row % EPISODE_ROWS == EPISODE_ROWS - 1:
            replay.prepare(0)
            replay.sample()


def warm_up() -> None:
    """Load what allocating and sampling load once, so that it is not counted as the replay's."""
    fill(build(64 * ENVS))


def measure(capacity_steps: int) -> dict[str, object]:
    process = psutil.Process()
    warm_up()
    before, began = process.memory_info().rss, time.perf_counter()
    replay = build(capacity_steps)
    fill(replay)
    seconds = time.perf_counter() - began
    resident = process.memory_info().rss - before
    predicted = replay_bytes(capacity_steps=capacity_steps, screen_size_pixels=SCREEN_SIZE_PIXELS)
    return {
        "capacity_steps": capacity_steps,
        "transitions": replay.num_transitions,
        "resident_bytes": resident,
        "predicted_bytes": predicted,
        "predicted_over_resident": predicted / resident,
        "bytes_per_transition": resident / replay.num_transitions,
        "fill_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--capacity-steps", type=int, default=1_000_000)
    options = parser.parse_args()
    torch.set_num_threads(1)  # this measures memory, and copies of a few frames gain nothing from more
    figures = measure(options.capacity_steps)
    report = {**circumstances(), **figures}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
