"""Bytes that the parts of a run take, by arithmetic where it is exact and as measured where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_MB = 10**6

REPLAY_ROW_BYTES_BESIDE_FRAME = 28
"""action i16, reward f32, discount f32, three flags; the sampler's i64, or a priority, sums and minima."""
SLOT_BYTES = 1 * _MB
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
MOST_ACTIONS = 18
"""Actions of the console's controller; most games use fewer."""
MOST_QUANTILES_TRACED = 64
"""Of the best action's return, at each step of an evaluation that is traced: enough for a picture."""
EMBEDDING_COSINES = 64
"""Inputs of the embedding of fractions. Dabney et al. (2018b), section 3.1."""

_F32 = 4


def replay_row_bytes(screen_size_pixels: int) -> int:
    """Compute the replay's bytes for one step of one environment: a frame of u8 and its other columns."""
    return screen_size_pixels**2 + REPLAY_ROW_BYTES_BESIDE_FRAME


def replay_bytes(*, capacity_steps: int, screen_size_pixels: int) -> int:
    """Return what the replay takes when it is full."""
    return capacity_steps * replay_row_bytes(screen_size_pixels)


def replay_is_beside(choice: str, *, needed_bytes: int, free_bytes: int) -> bool:
    """Return whether the replay lives on the learner's GPU: by choice, or by `auto` where it fits there."""
    return choice == "cuda" or (choice == "auto" and needed_bytes + CUDA_CONTEXT_BYTES <= free_bytes)


def trace_bytes(*, steps: int, num_actions: int, num_atoms: int, num_quantiles: int) -> int:
    """Return what the decisions of so many steps take: choice, ε draw, values, masses or quantiles."""
    distribution = 2 * num_atoms + _F32 * min(num_quantiles, MOST_QUANTILES_TRACED)
    return steps * (2 + _F32 * num_actions + distribution)


@dataclass(frozen=True, kw_only=True)
class NetworkShape:
    """What decides how many weights a network has."""

    kind: str
    """`nature`, `dopamine`, `data_efficient` or `impala`; another package's torso counts as `nature`."""
    screen_size_pixels: int
    stack_frames: int
    num_actions: int
    hidden_units: int
    width: int = 1
    """Multiplies the channels of `impala`."""
    dueling: bool = False
    noisy: bool = False
    outputs: int = 1
    """Numbers predicted of each action."""
    cosines: int = 0
    """Inputs of an embedding of fractions; 0 for none."""


def _counts(shape: NetworkShape) -> Counts:
    """Count the convolutions; those of another package's torso as if they were `nature`'s."""
    return _CONVOLUTIONS.get(shape.kind, _CONVOLUTIONS["nature"])(shape)


def network_parameters(shape: NetworkShape) -> int:
    """Return a network's weights and biases.

    A dueling head has a hidden layer for each of its two streams, which `dopamine` has one for, and outputs
    for the state (Wang et al. 2016). A noisy layer has a σ for each weight and bias. An embedding has the
    convolutions' outputs.
    """
    convolutions, seen, _ = _counts(shape)
    streams, rated = (2, shape.num_actions + 1) if shape.dueling else (1, shape.num_actions)
    layers = 1 if shape.kind == "dopamine" else streams
    hidden = layers * shape.hidden_units * (seen + 1)
    outputs = rated * shape.outputs * (shape.hidden_units + 1)
    embedding = (shape.cosines + 1) * seen if shape.cosines else 0
    return convolutions + (hidden + outputs) * (2 if shape.noisy else 1) + embedding


Counts = tuple[int, int, int]
"""Of convolutions: weights, numbers put out, and numbers that an update holds for each of its states."""


def _chain(*layers: tuple[int, int, int], padded: bool = False) -> Callable[[NetworkShape], Counts]:
    """Return what counts a chain of (channels, kernel, stride).

    Zeros around what a padded one sees let it put out ⌈size / stride⌉ pixels a side. A layer's numbers are
    held behind its ReLU, and beside them those of its gradient.
    """

    def count(shape: NetworkShape) -> Counts:
        size, channels, weights, held = shape.screen_size_pixels, shape.stack_frames, 0, 0
        for filters, kernel, stride in layers:
            weights += filters * (channels * kernel**2 + 1)
            size = -(-size // stride) if padded else (size - kernel) // stride + 1
            channels = filters
            held += 2 * channels * size**2
        return weights, channels * size**2, held

    return count


def _impala(shape: NetworkShape) -> Counts:
    """Return the counts of three sections of five 3×3 convolutions.

    A section holds its first layer's numbers; then, a quarter as many each, what it pools, their places in
    i64, and seven for its two residual blocks.
    """
    size, channels, weights, held = shape.screen_size_pixels, shape.stack_frames, 0, 0
    for filters in (16 * shape.width, 32 * shape.width, 32 * shape.width):
        weights += filters * (channels * 9 + 1) + 4 * filters * (filters * 9 + 1)
        held += filters * size**2
        size, channels = -(-size // 2), filters
        held += 10 * filters * size**2
    return weights, channels * size**2, held


_CONVOLUTIONS: dict[str, Callable[[NetworkShape], Counts]] = {
    "nature": _chain((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "dopamine": _chain((32, 8, 4), (64, 4, 2), (64, 3, 1), padded=True),
    "data_efficient": _chain((32, 5, 5), (64, 5, 5)),
    "impala": _impala,
}


def network_bytes(shape: NetworkShape) -> int:
    """Return what one copy of a network's weights takes."""
    return _F32 * network_parameters(shape)


def minibatch_bytes(
    shape: NetworkShape, *, batch_size: int, parts: int, fractions: int, pairs: int, are_shifted: bool
) -> int:
    """Return what a minibatch takes: its stacks as they are sampled, and what the update of a part holds.

    An implicit network has what its convolutions put out once for each of its `fractions`: their embedding,
    the product of both, and the gradients of these. Of each of the `pairs` of a prediction and a target that
    a loss compares there are five numbers. A part is made ready, then learned from: shifted stacks are f32,
    others become that as they are seen.
    """
    pixels = shape.stack_frames * shape.screen_size_pixels**2
    stack = _F32 * pixels if are_shifted else pixels
    _, seen, held = _counts(shape)
    making_ready = 5 * stack  # both as they are and as the network wants them, and a copy between
    seen_as_f32 = 0 if are_shifted else _F32 * pixels
    learning = 2 * stack + seen_as_f32 + _F32 * (held + 4 * fractions * seen + 5 * pairs)
    return batch_size * 2 * pixels + batch_size // parts * max(making_ready, learning)
