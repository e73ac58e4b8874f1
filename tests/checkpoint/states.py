"""Small states with a real ring, each row of which contains its number."""

from typing import Any

import numpy as np
import torch

from atari_dqn.replay.ring import FrameRing
from atari_dqn.types import StepBatch

CPU = torch.device("cpu")
MANY_ROWS = 1_000


def numbered(row: int, envs: int) -> StepBatch:
    no = np.zeros(envs, dtype=bool)
    return StepBatch(
        frame=np.full((envs, 2, 2), row % 251, dtype=np.uint8),
        reward=np.zeros(envs),
        terminated=no,
        truncated=no,
        life_lost=no,
        first=np.full(envs, row % 7 == 0),
    )


def ring_at(newest: int, *, rows: int = MANY_ROWS, envs: int = 1) -> FrameRing:
    """Return a ring whose newest row has this number."""
    ring = FrameRing(rows=rows, num_envs=envs, frame_shape=(2, 2), stack=1, device=CPU)
    ring.begin(numbered(0, envs))
    extend(ring, newest)
    return ring


def extend(ring: FrameRing, newest: int) -> None:
    """Add rows up to this one."""
    for row in range(ring.newest + 1, newest + 1):
        values = np.full(ring.num_envs, row - 1)
        ring.append(
            values % 5, values.astype(np.float32), np.ones(ring.num_envs), numbered(row, ring.num_envs)
        )


STREAM = np.arange(5, 13, dtype=np.uint8)
"""The state of the sampler's random stream."""


def training_state(step: int = 1, ring: FrameRing | None = None) -> dict[str, Any]:
    return {
        "clock": {"steps": step, "updates": 2},
        "learner": {"online": {"weight": torch.full((3,), float(step))}, "updates": 2},
        "replay": {
            "ring": (ring or ring_at(2 + step % 100)).state_dict(),
            "sampler": {"generator": STREAM},
            "first": 0,
        },
        "policy": {"state": 2**127 + 1, "nan": float("nan"), "none": None, "empty": []},
        "returns": np.array([1.5, -2.0]),
    }
