"""Rows of a replay as others see them: by absolute number, in pieces of a fixed size.

A stored row never changes until the ring comes round to it, oldest first. So whoever holds a loan of the rows
may read them while training goes on; the ring waits before it overwrites one that is still needed.

    row      0 ........ 8192 ...... 16384 ...... 24576 ... 26000        8192 rows a piece, say
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

PIECE_CELLS = 8_192
"""Cells in a whole piece: 58 MB of frames of 84 × 84. Digests of states rest on it."""

Tables = dict[str, np.ndarray]
"""Columns of some rows by name, each [rows, environments, …], on the host."""


@runtime_checkable
class Rows(Protocol):
    """Complete rows of a replay, from number `first` up to, not including, `stop`."""

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
        """Cells in a row."""
        ...

    def read(self, first: int, stop: int) -> Tables:
        """Return some of the rows, which lie within one piece; perhaps a view. Any thread may call."""
        ...


def piece_rows(envs: int) -> int:
    """Return the rows of a whole piece."""
    return max(1, PIECE_CELLS // envs)


def pieces_of(rows: Rows) -> Iterator[tuple[int, int]]:
    """Yield first and stop of each piece, oldest first; the outer two may be cut short."""
    size = piece_rows(rows.envs)
    for start in range(rows.first - rows.first % size, rows.stop, size):
        yield max(start, rows.first), min(start + size, rows.stop)


class Loan:
    """Rows that a reader still needs, from a number on. The reader gives them back oldest first."""

    def __init__(self, first: int) -> None:
        self._needed_from: float = first
        self._changed = threading.Condition()

    def give_back(self, before: float) -> None:
        """Need no row before this number any longer."""
        with self._changed:
            self._needed_from = max(self._needed_from, before)
            self._changed.notify_all()

    def end(self) -> None:
        """Need no row any longer."""
        self.give_back(float("inf"))

    @property
    def ended(self) -> bool:
        """Whether no row is needed any longer."""
        return self._needed_from == float("inf")

    def wait_for(self, row: int) -> None:
        """Return once a row is no longer needed."""
        if row < self._needed_from:
            return
        with self._changed:
            self._changed.wait_for(lambda: row < self._needed_from)


class RingRows:
    """The complete rows of a ring at one moment: a view of its tables, not a copy.

    Reading is safe until the ring comes round; `borrow` makes it wait.
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
        """Cells in a row."""
        return next(iter(self._tables.values())).shape[1]

    @property
    def capacity(self) -> int:
        """Rows that the ring holds at most."""
        return len(next(iter(self._tables.values())))

    def borrow(self) -> Loan:
        """Return a loan of all rows. One at a time: the ring asserts that the one before has ended."""
        return self._lend()

    def read(self, first: int, stop: int) -> Tables:
        """Return some of the rows: a view in RAM, unless they lie on both sides of the ring's seam."""
        return {name: _host(table, first, stop) for name, table in self._tables.items()}

    def __deepcopy__(self, memo: object) -> RingRows:
        """Return the rows in memory of their own, which nothing overwrites."""
        tables = {name: table.clone() for name, table in self._tables.items()}
        return RingRows(tables, first=self._first, stop=self._stop, lend=lambda: Loan(self._first))


def _host(table: Tensor, first: int, stop: int) -> np.ndarray:
    size = len(table)
    begin, count = first % size, stop - first
    end = begin + count
    part = table[begin:end] if end <= size else torch.cat([table[begin:], table[: end - size]])
    return part.cpu().numpy()
