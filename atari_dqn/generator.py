"""A torch generator's state, also where a run has moved to another kind of device."""

from __future__ import annotations

import hashlib
from typing import Any

import torch


def restore_generator(generator: torch.Generator, state: Any) -> None:
    """Put a generator where its saved state was.

    A CPU's generator and a GPU's are different machines: a state of the other kind becomes a seed, so that
    the run can go on, though not exactly.
    """
    saved = torch.as_tensor(state)
    if saved.shape == generator.get_state().shape:
        generator.set_state(saved)
    else:
        digest = hashlib.sha256(saved.numpy().tobytes()).digest()
        generator.manual_seed(int.from_bytes(digest[:8], "big") % 2**63)
