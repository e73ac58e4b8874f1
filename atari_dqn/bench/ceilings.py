"""Measure the ceilings of the hardware: the rates of plain emulation, matrix products and copies."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from atari_dqn.bench.kernels import synchronize
from atari_dqn.envs.games import ENVS
from atari_dqn.spec.schema import Spec

_MATRIX_ROWS = 1_024
_COPIED_BYTES = 2**28


@dataclass(frozen=True, kw_only=True)
class Ceilings:
    """Rates that training on this machine cannot exceed."""

    emulator_frames_per_second: float
    """One core that plays the game without using its screens."""
    fp32_flop_per_second: float
    bf16_flop_per_second: float
    """Products of two matrices of 1,024 × 1,024."""
    copy_bytes_per_second: float
    """Copies of 256 MiB within the memory of the device."""


def measure_ceilings(spec: Spec, device: torch.device, *, seconds: float) -> Ceilings:
    """Measure each ceiling for `seconds`."""
    return Ceilings(
        emulator_frames_per_second=_emulator_frames_per_second(spec, seconds),
        fp32_flop_per_second=_matmul_flop_per_second(torch.float32, device, seconds),
        bf16_flop_per_second=_matmul_flop_per_second(torch.bfloat16, device, seconds),
        copy_bytes_per_second=_copy_bytes_per_second(device, seconds),
    )


def _emulator_frames_per_second(spec: Spec, seconds: float) -> float:
    shard = ENVS.load(spec.env.kind)(
        game=spec.game,
        env=spec.env,
        envs=range(1),
        num_envs=1,
        seed=spec.seed,
        stream="bench",
        power_on_reset=False,
    )
    emulator, num_actions = shard.emulators[0], shard.info.num_actions
    emulator.reset(0)
    frames = 0

    def play() -> None:
        nonlocal frames
        emulator.act(frames // spec.env.frame_skip % num_actions)
        frames += 1
        if emulator.game_over():
            emulator.reset(frames)

    return _calls_per_second(play, seconds)


def _matmul_flop_per_second(dtype: torch.dtype, device: torch.device, seconds: float) -> float:
    rows = _MATRIX_ROWS
    a, b = (torch.ones(rows, rows, dtype=dtype, device=device) for _ in range(2))

    def multiply() -> None:
        torch.mm(a, b)
        synchronize(device)

    return 2 * rows**3 * _calls_per_second(multiply, seconds)


def _copy_bytes_per_second(device: torch.device, seconds: float) -> float:
    source, target = (torch.ones(_COPIED_BYTES, dtype=torch.uint8, device=device) for _ in range(2))

    def copy() -> None:
        target.copy_(source)
        synchronize(device)

    return _COPIED_BYTES * _calls_per_second(copy, seconds)


def _calls_per_second(function: Callable[[], None], seconds: float) -> float:
    function()  # the first call allocates memory and selects a kernel
    calls, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds or not calls:
        function()
        calls += 1
    return calls / elapsed
