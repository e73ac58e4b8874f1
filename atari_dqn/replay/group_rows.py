"""The rows of several groups of environments as one numbered set, for checkpoints.

Each group has written a number of rows of its own. Row t of group g has the number g · K + t, where K is more
than a group ever writes, so that the rows of a group are consecutive and never change their numbers:

    group 0   [ 300 8500 )       numbers   [      300       8500 )
    group 1   [ 120 8320 )       numbers   [  K + 120   K + 8320 )
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

from atari_dqn.replay.rows import Loan, RingRows, Rows, Tables, piece_rows

_GROUP_PIECES = 2**20
"""Pieces that belong to a group: more than it ever writes, 8 billion frames."""


def group_rows(envs: int) -> int:
    """Compute K, the numbers that a group of `envs` environments has: a multiple of a piece."""
    return _GROUP_PIECES * piece_rows(envs)


class GroupLoan(Loan):
    """A reader's claim on the rows of all groups, given back in the order of their numbers."""

    def __init__(self, loans: Sequence[Loan], *, rows_each: int) -> None:
        self._loans, self._rows_each = loans, rows_each
        super().__init__(0)

    def give_back(self, before: float) -> None:
        """Give back all rows before this number."""
        super().give_back(before)
        for group, loan in enumerate(self._loans):
            row = before - group * self._rows_each
            loan.give_back(row if row < self._rows_each else math.inf)


class GroupedRows(RingRows):
    """The complete rows of each group at one moment."""

    def __init__(self, groups: Sequence[RingRows]) -> None:
        self._groups = groups
        self._rows_each = group_rows(groups[0].envs)

    @property
    def first(self) -> int:
        """Number of the first group's oldest row."""
        return self.spans[0][0]

    @property
    def stop(self) -> int:
        """Number after the last group's newest row."""
        return self.spans[-1][1]

    @property
    def envs(self) -> int:
        """Number of environments of a group."""
        return self._groups[0].envs

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The rows of each group."""
        begins = (group * self._rows_each for group in range(len(self._groups)))
        return [
            (begin + rows.first, begin + rows.stop) for begin, rows in zip(begins, self._groups, strict=True)
        ]

    @property
    def capacity(self) -> int:
        """Largest number of rows of all groups together."""
        return sum(rows.capacity for rows in self._groups)

    def borrow(self) -> Loan:
        """Return a loan of all rows. The previous loans of the rings must have ended."""
        return GroupLoan([rows.borrow() for rows in self._groups], rows_each=self._rows_each)

    def read(self, first: int, stop: int) -> Tables:
        """Return some rows of one group."""
        group, row = divmod(first, self._rows_each)
        return self._groups[group].read(row, row + stop - first)

    def __deepcopy__(self, memo: object) -> GroupedRows:
        """Copy the rows to new memory, which is not overwritten."""
        return GroupedRows([copy.deepcopy(rows) for rows in self._groups])


class RowsOfGroup:
    """The rows of one group among numbered rows. Implements `Rows`."""

    def __init__(self, rows: Rows, group: int) -> None:
        self._rows, self._group = rows, group
        self._begin = group * group_rows(rows.envs)

    @property
    def first(self) -> int:
        """Number of the oldest row."""
        return self.spans[0][0]

    @property
    def stop(self) -> int:
        """Number after the newest row."""
        return self.spans[0][1]

    @property
    def envs(self) -> int:
        """Number of environments of the group."""
        return self._rows.envs

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The rows are consecutive."""
        first, stop = self._rows.spans[self._group]
        return [(first - self._begin, stop - self._begin)]

    def read(self, first: int, stop: int) -> Tables:
        """Return rows of a single piece."""
        return self._rows.read(self._begin + first, self._begin + stop)
