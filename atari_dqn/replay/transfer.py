"""Values on their way between host and device. A GPU copies when it gets there, and the host does not wait.

What leaves the host is copied from pinned memory, which torch keeps until the GPU has read it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor


def upload(values: np.ndarray, place: Tensor) -> None:
    """Write host values into a tensor of the same shape, as its kind of number.

    In RAM NumPy does, alone: torch would wake its threads for a copy of some kilobytes.
    """
    _check_shapes(values, place)
    if place.device.type == "cpu":
        place.numpy()[...] = values
    else:
        on_host = torch.from_numpy(np.ascontiguousarray(values)).to(place.dtype)
        place.copy_(on_host.pin_memory(), non_blocking=True)


def _check_shapes(values: np.ndarray, place: Tensor | np.ndarray) -> None:
    assert values.shape == place.shape, f"found {values.shape}, expected {tuple(place.shape)}"


class RowWriter(Protocol):
    """Writes host values into rows of a tensor."""

    def write(self, values: np.ndarray, first: int) -> None:
        """Write rows from number `first` on, as the tensor's kind of number."""
        ...


class _ToRam:
    """Rows in RAM, by a view of them that is made once: a step writes few bytes into many tables."""

    def __init__(self, rows: Tensor) -> None:
        self._rows: np.ndarray = rows.numpy()

    def write(self, values: np.ndarray, first: int) -> None:
        """Write rows."""
        place = self._rows[first : first + len(values)]
        _check_shapes(values, place)
        place[...] = values


class _ToGpu:
    """Rows on a GPU."""

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows

    def write(self, values: np.ndarray, first: int) -> None:
        """Have the GPU write rows."""
        upload(values, self._rows[first : first + len(values)])


def row_writer(rows: Tensor) -> RowWriter:
    """Return what writes host values into rows of a tensor, which stays where it is."""
    return _ToRam(rows) if rows.device.type == "cpu" else _ToGpu(rows)


def sent(values: Tensor, device: torch.device) -> Tensor:
    """Return host values on a device."""
    if device.type == "cpu":
        return values
    return values.pin_memory().to(device, non_blocking=True)


class HostCopy(Protocol):
    """A tensor as the host sees it: as of the latest `fetch`, once `wait` has returned."""

    is_here: bool
    """The tensor itself lies on the host, so that nobody ever waits."""

    def fetch(self) -> None:
        """Ask for the values that the tensor has once the work asked for so far is done."""
        ...

    def wait(self) -> np.ndarray:
        """Wait for the values of the latest `fetch`, and return them: a view, which later ones change."""
        ...


class InRam:
    """A tensor that lies on the host."""

    is_here = True

    def __init__(self, source: Tensor) -> None:
        self._values = source.numpy()

    def fetch(self) -> None:
        """Do nothing."""

    def wait(self) -> np.ndarray:
        """Return the tensor's own values."""
        return self._values


class FromGpu:
    """A tensor on a GPU, and pinned memory it is copied to."""

    is_here = False

    def __init__(self, source: Tensor) -> None:
        self._source = source
        self._copy = torch.zeros(source.shape, dtype=source.dtype, pin_memory=True)
        self._values: np.ndarray = self._copy.numpy()
        self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def fetch(self) -> None:
        """Have the GPU copy the values."""
        self._copy.copy_(self._source, non_blocking=True)
        self._arrived.record()

    def wait(self) -> np.ndarray:
        """Wait for the copy."""
        self._arrived.synchronize()
        return self._values


def host_copy(source: Tensor) -> HostCopy:
    """Return a tensor as the host sees it."""
    return InRam(source) if source.device.type == "cpu" else FromGpu(source)
