"""Named random streams: a run's seed and a stream's name give the same numbers in any process."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from atari_dqn.types import StateDict

if TYPE_CHECKING:
    import torch


def stream_seed(seed: int, *name: str | int) -> int:
    """Compute the 128-bit seed of the stream `name` from the run's `seed`.

    The seed is a hash, not an offset, so that the streams of neighbouring seeds or environments are
    unrelated.
    """
    text = "/".join(str(part) for part in (seed, *name))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def numpy_stream(seed: int, *name: str | int) -> np.random.Generator:
    """Create the NumPy generator of the stream `name`."""
    return np.random.Generator(np.random.PCG64(stream_seed(seed, *name)))


def torch_seed(seed: int, *name: str | int) -> int:
    """Compute the seed of the stream `name` in the range of `torch.Generator.manual_seed`."""
    return stream_seed(seed, *name) % 2**63


def generator_state(generator: np.random.Generator) -> StateDict:
    """Return the state of a NumPy generator as plain data."""
    state: Any = generator.bit_generator.state
    return dict(state)


def set_generator_state(generator: np.random.Generator, state: StateDict) -> None:
    """Restore a NumPy generator to a state returned by `generator_state`."""
    generator.bit_generator.state = state


def restore_generator(generator: torch.Generator, state: Any) -> None:
    """Restore a generator to its saved state.

    Generators on a CPU and on a GPU use different algorithms. A state of the other kind is hashed to a seed:
    the run can continue, but not exactly.
    """
    import torch  # imported here so that environments do not import torch

    saved = torch.as_tensor(state)
    if saved.shape == generator.get_state().shape:
        generator.set_state(saved)
    else:
        digest = hashlib.sha256(saved.numpy().tobytes()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") % 2**63)
