"""Bytes that the parts of a run take, by arithmetic where it is exact and as measured where it is not."""

from __future__ import annotations

from collections.abc import Callable

_MB = 10**6

REPLAY_ROW_BYTES_BESIDE_FRAME = 28
"""action i16, reward f32, discount f32, three flags; the sampler's i64, or a priority, sums and minima."""
LANE_BYTES = 1 * _MB
"""An emulator with its ROM, screen buffers and preprocessing: 0.7 MB measured, ale-py 0.12."""
WORKER_BYTES = 90 * _MB
"""A spawned process with NumPy, OpenCV and ale-py: 63 MB measured before the first emulator."""
PROCESS_BYTES = 450 * _MB
"""The learner's process after an update of the Nature network: 410 MB measured, torch 2.13 on a CPU."""
CUDA_PROCESS_BYTES = 3000 * _MB
"""The same where torch has loaded CUDA's libraries: an allowance, larger than most builds need."""
CUDA_CONTEXT_BYTES = 1000 * _MB
"""What CUDA, cuDNN and cuBLAS take of a GPU for themselves: an allowance."""
LOG_BYTES_PER_STEP = 0.5
"""Rows of the tables, spread over agent steps: an episode's row of 60 bytes every few hundred steps."""
SAVED_REPLAY_SHARE = 1 / 30
"""Of a replay's row in a checkpoint, compressed: an allowance; docs/results/codec.json has 1/70 at worst."""

_F32 = 4


def replay_row_bytes(screen_size_pixels: int) -> int:
    """Return what the replay takes for one agent step of one lane: a frame of u8 and what lies beside it."""
    return screen_size_pixels**2 + REPLAY_ROW_BYTES_BESIDE_FRAME


def replay_bytes(*, capacity_steps: int, screen_size_pixels: int) -> int:
    """Return what the replay takes when it is full."""
    return capacity_steps * replay_row_bytes(screen_size_pixels)


def nature_parameters(
    *, screen_size_pixels: int, stack_frames: int, num_actions: int, dueling: bool = False
) -> int:
    """Return the weights and biases of the Nature network. Mnih et al. (2015), model architecture.

    A dueling head has a hidden layer for each of its two streams, and one output more. Wang et al. (2016).
    """
    size, channels, count = screen_size_pixels, stack_frames, 0
    for filters, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
        count += filters * (channels * kernel**2 + 1)
        size, channels = (size - kernel) // stride + 1, filters
    units = 512
    streams, outputs = (2, num_actions + 1) if dueling else (1, num_actions)
    return count + streams * units * (channels * size**2 + 1) + outputs * (units + 1)


_PARAMETERS: dict[str, Callable[..., int]] = {"nature": nature_parameters}


def network_bytes(
    kind: str, *, screen_size_pixels: int, stack_frames: int, num_actions: int, dueling: bool
) -> int:
    """Return what one copy of a network's weights takes."""
    parameters = _PARAMETERS[kind](
        screen_size_pixels=screen_size_pixels,
        stack_frames=stack_frames,
        num_actions=num_actions,
        dueling=dueling,
    )
    return _F32 * parameters


def minibatch_bytes(*, part_size: int, screen_size_pixels: int, stack_frames: int) -> int:
    """Return what a part of a minibatch takes: both stacks as f32, as much for activations, as for gradients.

    The whole minibatch, in bytes, is small beside that.
    """
    stack = stack_frames * screen_size_pixels**2
    return 3 * part_size * 2 * stack * _F32
