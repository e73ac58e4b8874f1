"""Read the full evaluations of a run while it runs."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from atari_dqn.files.atomic import read_regular
from atari_dqn.scale.tuning.scores import COLUMNS

_KINDS = ("full", "final")
"""Evaluations that rate a run; a light one plays fewer games."""


@dataclass(frozen=True, kw_only=True)
class FullEvaluation:
    """A row of eval_log.csv."""

    at_frames: int
    columns: Mapping[str, float]
    protocol_digest: str


class FullEvaluations:
    """The full evaluations of a run that may not have begun. `refresh` reads the table if it has changed."""

    def __init__(self, run: Path) -> None:
        self._path = run / "eval_log.csv"
        self._stamp: tuple[int, int] | None = None
        self._rows: list[FullEvaluation] = []

    def refresh(self) -> None:
        """Read the table; an incomplete last row is left out."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - each second, for each run
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._rows, self._stamp = list(_rows(read_regular(self._path))), stamp
        except OSError:
            self._rows, self._stamp = [], None

    def at(self, frames: int, iteration_frames: int) -> FullEvaluation | None:
        """Return the evaluation that was due at a frame; None if there is none yet.

        `iteration_frames`: of the run (`spec.iteration`); an evaluation is late by less.
        """
        due = [row for row in self._rows if frames <= row.at_frames < frames + iteration_frames]
        return due[-1] if due else None


def _rows(data: bytes) -> Iterator[FullEvaluation]:
    complete = data[: data.rfind(b"\n") + 1].decode(errors="replace")
    for row in csv.DictReader(complete.splitlines()):
        if row.get("eval_type") in _KINDS and str(row.get("env_frames")).isdecimal():
            yield FullEvaluation(
                at_frames=int(row["env_frames"]),
                columns={name: _number(row.get(name)) for name in COLUMNS},
                protocol_digest=row.get("protocol") or "",
            )


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
