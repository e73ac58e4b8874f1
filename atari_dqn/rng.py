"""Random streams. Every draw names its stream; the same seed and name give the same stream anywhere."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from atari_dqn.types import StateDict

if TYPE_CHECKING:
    import torch


def stream_seed(seed: int, *name: str | int) -> int:
    """Return the 128-bit seed of the stream called `name` under the run's `seed`.

    A hash, not an offset: streams of neighbouring seeds or environments share nothing.
    """
    text = "/".join(str(part) for part in (seed, *name))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def numpy_stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the NumPy generator of the stream called `name`."""
    return np.random.Generator(np.random.PCG64(stream_seed(seed, *name)))


def torch_seed(seed: int, *name: str | int) -> int:
    """Return a seed in the range `torch.Generator.manual_seed` takes."""
    return stream_seed(seed, *name) % 2**63


def generator_state(generator: np.random.Generator) -> StateDict:
    """Return a NumPy generator's state as plain data."""
    state: Any = generator.bit_generator.state
    return dict(state)


def set_generator_state(generator: np.random.Generator, state: StateDict) -> None:
    """Put a NumPy generator where `generator_state` found it."""
    generator.bit_generator.state = state


def restore_generator(generator: torch.Generator, state: Any) -> None:
    """Put a generator where its saved state was.

    A CPU's generator and a GPU's are different machines: a state of the other kind becomes a seed, so that
    the run can go on, though not exactly.
    """
    import torch  # here, so that environments need not load it

    saved = torch.as_tensor(state)
    if saved.shape == generator.get_state().shape:
        generator.set_state(saved)
    else:
        digest = hashlib.sha256(saved.numpy().tobytes()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") % 2**63)
