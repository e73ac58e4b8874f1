"""Save the rows of a replay in use as segments of a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from atari_dqn.machine.sizes import SAVED_REPLAY_SHARE
from atari_dqn.replay.rows import RingRows, pieces_of
from atari_dqn.run.checkpoint.segments import (
    FOLDER,
    SavedRows,
    Segment,
    as_plain,
    columns_of,
    from_plain,
    share_segment,
    write_segment,
)
from atari_dqn.run.checkpoint.state_tree import piece_digest, rows_digest


class RowSaver:
    """Saves rows in a checkpoint being written: links segments of the previous checkpoint, writes the others.

    The oldest rows are saved and released first, because the ring overwrites them next while training
    continues.
    """

    def __init__(self, rows: RingRows, *, before: SavedRows | None, keep: bool) -> None:
        self._rows, self._before, self.keep = rows, before, keep
        self._columns = columns_of(rows.read(rows.first, rows.first))
        self.segments: list[Segment] = []
        self._digests: list[tuple[int, int, str]] = []
        self._new_rows = self._new_bytes = 0
        self._loan = rows.borrow()

    def save(self, partial: Path, check_cancelled: Callable[[], None]) -> None:
        """Write the folder of segments; raise `OSError` if writing fails."""
        if self.keep:
            (partial / FOLDER).mkdir()
        for first, stop in pieces_of(self._rows):
            check_cancelled()
            digest = self._save_piece(partial, first, stop) if self.keep else self._digest(first, stop)
            self._digests.append((first, stop, digest))
            self._loan.give_back(stop)

    def end(self) -> None:
        """Release all rows, also after an error."""
        self._loan.end()

    def plain(self) -> dict[str, Any]:
        """Return the description of the rows for state.json."""
        return as_plain(self._rows, self._columns, self.segments)

    def saved_in(self, checkpoint: Path) -> SavedRows:
        """Return the rows as saved in the checkpoint."""
        return from_plain(checkpoint, self.plain())

    @property
    def digest(self) -> str:
        """The digest of all rows, available after `save`."""
        return rows_digest(self._digests)

    def bytes_expected(self) -> int:
        """Estimate the size of the segments still to be written from those already written."""
        row_bytes = sum(
            np.dtype(dtype).itemsize * math.prod(shape) for dtype, shape in self._columns.values()
        )
        per_row = self._new_bytes / self._new_rows if self._new_rows else row_bytes * SAVED_REPLAY_SHARE
        left = [stop - first for first, stop in pieces_of(self._rows) if self._known(first, stop) is None]
        return round(per_row * sum(left)) if self.keep else 0

    def _save_piece(self, partial: Path, first: int, stop: int) -> str:
        known = self._known(first, stop)
        if known is None or not self._share(partial, known):
            return self._write(partial, first, stop)
        self.segments.append(known)
        whole = (known.first, known.stop) == (first, stop)
        return known.digest if whole else self._digest(first, stop)

    def _share(self, partial: Path, segment: Segment) -> bool:
        assert self._before is not None
        return share_segment(self._before.checkpoint, partial, segment)

    def _write(self, partial: Path, first: int, stop: int) -> str:
        segment = write_segment(partial, self._rows.read(first, stop), first=first, stop=stop)
        self.segments.append(segment)
        self._new_rows += stop - first
        self._new_bytes += segment.bytes
        return segment.digest

    def _known(self, first: int, stop: int) -> Segment | None:
        """Return the segment of the previous checkpoint that holds these rows; None without one."""
        return None if self._before is None else self._before.segment_of(first, stop)

    def _digest(self, first: int, stop: int) -> str:
        return piece_digest(self._rows.read(first, stop))
