"""Copy values between host and device asynchronously, without making the host wait for the GPU.

Copies to a GPU are made from pinned memory, which torch keeps until the GPU has read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


def upload(values: np.ndarray, place: Tensor) -> None:
    """Copy host values into a tensor of the same shape, converted to its dtype.

    NumPy copies to tensors in RAM, because torch would start its threads for a few kilobytes.
    """
    _check_shapes(values, place)
    if place.device.type == "cpu":
        place.numpy()[...] = values
    else:
        on_host = torch.from_numpy(np.ascontiguousarray(values)).to(place.dtype)
        place.copy_(on_host.pin_memory(), non_blocking=True)


def upload_rows(values: np.ndarray, ring: Tensor, row: int) -> None:
    """Copy consecutive rows into a ring, the first of them to the row of this number."""
    begin = row % len(ring)
    before_seam = min(len(values), len(ring) - begin)
    upload(values[:before_seam], ring[begin : begin + before_seam])
    upload(values[before_seam:], ring[: len(values) - before_seam])


def zero_bytes(shape: Sequence[int], device: torch.device) -> Tensor:
    """Create a tensor of zero bytes; in RAM, its pages are taken from the system when they are first used."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=torch.uint8, device=device)
    return torch.from_numpy(np.zeros(shape, dtype=np.uint8))


def _check_shapes(values: np.ndarray, place: Tensor | np.ndarray) -> None:
    assert values.shape == place.shape, f"found {values.shape}, expected {tuple(place.shape)}"


class RowWriter(Protocol):
    """Writes host values into rows of a tensor."""

    def write(self, values: np.ndarray, first: int) -> None:
        """Write rows from index `first` on, converted to the tensor's dtype."""
        ...


class _ToRam:
    """Writes rows of a tensor in RAM, through one NumPy view because each write is small."""

    def __init__(self, rows: Tensor) -> None:
        self._rows: np.ndarray = rows.numpy()

    def write(self, values: np.ndarray, first: int) -> None:
        """Write rows."""
        place = self._rows[first : first + len(values)]
        _check_shapes(values, place)
        place[...] = values


class _ToGpu:
    """Writes rows of a tensor on a GPU."""

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows

    def write(self, values: np.ndarray, first: int) -> None:
        """Write rows asynchronously."""
        upload(values, self._rows[first : first + len(values)])


def row_writer(rows: Tensor) -> RowWriter:
    """Create the writer for the rows of a tensor, whose memory must not move."""
    return _ToRam(rows) if rows.device.type == "cpu" else _ToGpu(rows)


class HostCopy(Protocol):
    """A copy of a tensor on the host, requested by `fetch` and returned by `wait`."""

    is_on_host: bool
    """Whether the tensor itself is on the host, so that `wait` returns at once."""

    def fetch(self) -> None:
        """Start copying the values that the tensor has after the work queued so far."""
        ...

    def wait(self) -> np.ndarray:
        """Wait for the latest `fetch` and return its values, a view that later ones overwrite."""
        ...


class InRam:
    """A tensor on the host."""

    is_on_host = True

    def __init__(self, source: Tensor) -> None:
        self._values = source.numpy()

    def fetch(self) -> None:
        """Do nothing."""

    def wait(self) -> np.ndarray:
        """Return a view of the tensor."""
        return self._values


class FromGpu:
    """A tensor on a GPU, and the pinned memory that it is copied to."""

    is_on_host = False

    def __init__(self, source: Tensor) -> None:
        self._source = source
        self._copy = torch.zeros(source.shape, dtype=source.dtype, pin_memory=True)
        self._values: np.ndarray = self._copy.numpy()
        self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def fetch(self) -> None:
        """Start copying the values."""
        self._copy.copy_(self._source, non_blocking=True)
        self._arrived.record()

    def wait(self) -> np.ndarray:
        """Wait for the copy and return it."""
        self._arrived.synchronize()
        return self._values


def host_copy(source: Tensor) -> HostCopy:
    """Create the host copy of a tensor."""
    return InRam(source) if source.device.type == "cpu" else FromGpu(source)
