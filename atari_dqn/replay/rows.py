"""Access to the rows of a ring by row number, in pieces of a fixed size, for checkpoints.

A row is one time step of all environments. A stored row does not change until the ring overwrites it, oldest
first. A reader with a loan can therefore read rows while training continues: the ring waits before it
overwrites a row that is still needed.

    row      0 ........ 8192 ...... 16384 ...... 24576 ... 26000        with 8192 rows in a piece
    stored        [ 3000 ................................. 26000 )
    pieces        [ 3000 8192 ) [ 8192 16384 ) [ 16384 24576 ) [ 24576 26000 )
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

PIECE_FRAMES = 8_192
"""Number of frames in a complete piece: 58 MB of 84 × 84 pixels. State digests depend on this number."""

Tables = dict[str, np.ndarray]
"""The columns of some rows by name, each [rows, environments, …], on the host."""


@runtime_checkable
class Rows(Protocol):
    """The complete rows of a replay with the numbers from `first` to `stop` − 1."""

    @property
    def first(self) -> int:
        """Number of the oldest row."""
        ...

    @property
    def stop(self) -> int:
        """Number after the newest row."""
        ...

    @property
    def envs(self) -> int:
        """Number of environments."""
        ...

    @property
    def spans(self) -> list[tuple[int, int]]:
        """`first` and `stop` of each stretch of consecutive rows; several only for groups (`group_rows`)."""
        ...

    def read(self, first: int, stop: int) -> Tables:
        """Return rows of a single piece, possibly as views. Thread-safe."""
        ...


def piece_rows(envs: int) -> int:
    """Compute the number of rows in a complete piece."""
    return max(1, PIECE_FRAMES // envs)


def pieces_of(rows: Rows) -> Iterator[tuple[int, int]]:
    """Yield `first` and `stop` of each piece, oldest first; the ends of a span may be shorter pieces."""
    size = piece_rows(rows.envs)
    for first, stop in rows.spans:
        for start in range(first - first % size, stop, size):
            yield max(start, first), min(start + size, stop)


class Loan:
    """A reader's claim on all rows from a given number on. The reader gives them back, oldest first."""

    def __init__(self, first: int) -> None:
        self._needed_from: float = first
        self._changed = threading.Condition()

    def give_back(self, before: float) -> None:
        """Give back all rows before this number."""
        with self._changed:
            self._needed_from = max(self._needed_from, before)
            self._changed.notify_all()

    def end(self) -> None:
        """Give back all rows."""
        self.give_back(float("inf"))

    @property
    def ended(self) -> bool:
        """Whether all rows have been given back."""
        return self._needed_from == float("inf")

    def wait_for(self, row: int) -> None:
        """Wait until a row has been given back."""
        if row < self._needed_from:
            return
        with self._changed:
            self._changed.wait_for(lambda: row < self._needed_from)


class RingRows:
    """The complete rows of a ring at one moment, as a view of its columns.

    The rows can be read until the ring overwrites them; `borrow` delays that.
    """

    def __init__(
        self, tables: Mapping[str, Tensor], *, first: int, stop: int, lend: Callable[[], Loan]
    ) -> None:
        self._tables, self._first, self._stop, self._lend = dict(tables), first, stop, lend

    @property
    def first(self) -> int:
        """Number of the oldest row."""
        return self._first

    @property
    def stop(self) -> int:
        """Number after the newest row."""
        return self._stop

    @property
    def envs(self) -> int:
        """Number of environments."""
        return next(iter(self._tables.values())).shape[1]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The rows are consecutive."""
        return [(self._first, self._stop)]

    @property
    def capacity(self) -> int:
        """Largest number of rows in the ring."""
        return len(next(iter(self._tables.values())))

    def borrow(self) -> Loan:
        """Return a loan of all rows. The previous loan of the ring must have ended."""
        return self._lend()

    def read(self, first: int, stop: int) -> Tables:
        """Return some of the rows: a view if they are in RAM and contiguous in the ring, otherwise a copy."""
        return {name: _host(table, first, stop) for name, table in self._tables.items()}

    def __deepcopy__(self, memo: object) -> RingRows:
        """Copy the rows to new memory, which is not overwritten."""
        tables = {name: table.clone() for name, table in self._tables.items()}
        return RingRows(tables, first=self._first, stop=self._stop, lend=lambda: Loan(self._first))


def _host(table: Tensor, first: int, stop: int) -> np.ndarray:
    size = len(table)
    begin, count = first % size, stop - first
    end = begin + count
    part = table[begin:end] if end <= size else torch.cat([table[begin:], table[: end - size]])
    return part.cpu().numpy()
