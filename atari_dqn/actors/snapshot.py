"""The published weights in shared memory: one writer, many readers, and never a mixture of two versions.

    slot 0   version 40 · CRC-32 · weights          the writer fills the slot that is not the newest,
    slot 1   version 50 · CRC-32 · weights          then says that it is

A reader copies the newest slot and compares the checksum. If the slot was overwritten meanwhile, it reads
again.
"""

from __future__ import annotations

import multiprocessing
import time
import zlib
from typing import Any

import numpy as np
from jaxtyping import Float32

_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.001, 60.0
_SLOTS = 2


class SharedSnapshot:
    """Weights with a version. The memory is anonymous: it is freed when the last process has ended.

    Processes get it as an argument when they are started.
    """

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._newest: Any = context.RawValue("q", -1)
        """Number of publications minus 1; its remainder is the slot."""
        self._versions: Any = context.RawArray("q", [-1] * _SLOTS)
        self._checksums: Any = context.RawArray("Q", _SLOTS)
        self._slots: Any = [context.RawArray("f", size) for _ in range(_SLOTS)]

    def publish(self, version: int, flat: Float32[np.ndarray, "n"]) -> None:
        """Publish weights; versions never go back."""
        number = self._newest.value + 1
        assert number == 0 or version >= self._versions[(number - 1) % _SLOTS]
        slot = number % _SLOTS
        weights = np.frombuffer(self._slots[slot], dtype=np.float32)
        weights[:] = flat
        self._versions[slot], self._checksums[slot] = version, checksum_of(version, weights)
        self._newest.value = number

    def fetch(self, least_version: int) -> tuple[int, Float32[np.ndarray, "n"]]:
        """Return the newest version and a copy of its weights; wait until there is one of `least_version`.

        Raise `TimeoutError` after a minute.
        """
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while time.monotonic() < deadline:
            found = self._copied()
            if found is not None and found[0] >= least_version:
                return found
            time.sleep(_WAIT_SECONDS)
        raise TimeoutError(f"no weights of version {least_version} or later were published in a minute")

    def _copied(self) -> tuple[int, np.ndarray] | None:
        """Copy the newest slot; None if there is none, or if it was overwritten meanwhile."""
        slot = self._newest.value % _SLOTS
        if self._newest.value < 0:
            return None
        version, checksum = self._versions[slot], self._checksums[slot]
        weights = np.frombuffer(self._slots[slot], dtype=np.float32).copy()
        return (version, weights) if checksum == checksum_of(version, weights) else None


def checksum_of(version: int, weights: Float32[np.ndarray, "n"]) -> int:
    """Compute the checksum of weights and their version."""
    return zlib.crc32(weights.data, version & 0xFFFFFFFF)
