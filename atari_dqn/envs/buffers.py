"""Allocate the arrays of a `StepBatch`, in this process or in shared memory."""

from __future__ import annotations

from dataclasses import fields
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atari_dqn.types import StepBatch

_DTYPES = {
    "frame": np.uint8,
    "reward": np.float64,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "life_lost": np.bool_,
    "first": np.bool_,
}
_ALIGNMENT_BYTES = 64


def _shape(name: str, num_envs: int, frame_shape: tuple[int, int]) -> tuple[int, ...]:
    return (num_envs, *frame_shape) if name == "frame" else (num_envs,)


def _padded_bytes(name: str, num_envs: int, frame_shape: tuple[int, int]) -> int:
    size = prod(_shape(name, num_envs, frame_shape)) * np.dtype(_DTYPES[name]).itemsize
    return -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def batch_bytes(num_envs: int, frame_shape: tuple[int, int]) -> int:
    """Compute the number of bytes that `batch_in_memory` needs."""
    return sum(_padded_bytes(name, num_envs, frame_shape) for name in _DTYPES)


def batch_in_memory(memory: NDArray[np.uint8], num_envs: int, frame_shape: tuple[int, int]) -> StepBatch:
    """Create a batch whose arrays are consecutive views of `memory`, each aligned to a cache line."""
    arrays: dict[str, NDArray[Any]] = {}
    begin = 0
    for name, dtype in _DTYPES.items():
        shape = _shape(name, num_envs, frame_shape)
        count = prod(shape)
        arrays[name] = np.frombuffer(memory, dtype, count, begin).reshape(shape)
        begin += _padded_bytes(name, num_envs, frame_shape)
    return StepBatch(**arrays)


def select_envs(batch: StepBatch, envs: range) -> StepBatch:
    """Return views of a batch for consecutive environments."""
    rows = slice(envs.start, envs.stop)
    return StepBatch(**{field.name: getattr(batch, field.name)[rows] for field in fields(batch)})


def new_batch(num_envs: int, frame_shape: tuple[int, int]) -> StepBatch:
    """Allocate a batch in the memory of this process."""
    return batch_in_memory(np.zeros(batch_bytes(num_envs, frame_shape), np.uint8), num_envs, frame_shape)
