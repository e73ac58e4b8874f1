"""Types of the bookkeeping in the manifest of a checkpoint, which `train.session` writes and reads.

A key that was added since has a default, so that older checkpoints can be read; None where it may be empty.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from atari_dqn.errors import DamagedError
from atari_dqn.files.documents import MOST_INT, Count, Number, check_types
from atari_dqn.run.provenance import MOST_THREADS
from atari_dqn.telemetry.events import GateState

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class FileRecord(Struct):
    """Length and SHA-256 of a file, or of the beginning of a log."""

    bytes: Count
    sha256: Sha256


class _Period(Struct):
    passed: Count


class _RecentBatch(Struct):
    cell: list[Count]
    weight: list[float]


class _Score(Struct, forbid_unknown_fields=True):
    returns: Annotated[list[float], Meta(min_length=1)]
    lengths_frames: list[Count]
    end_reasons: list[Literal["game_over", "frame_cap"]]


class _Gate(Struct):
    state: GateState
    value: Number
    wrong_in_a_row: Count
    right_in_a_row: Count


class _EvaluationsGate(_Gate):
    first: Number
    best: Number


class _ActionsGate(_Gate):
    counts: list[Count]


class _ThroughputGate(_Gate):
    rates: list[Number]


class _Gates(Struct):
    loss: _Gate
    gradients: _Gate
    grad_norm: _Gate
    q_bound: _Gate
    evaluations: _EvaluationsGate
    priorities: _Gate
    actions: _ActionsGate
    dead_units: _Gate
    throughput: _ThroughputGate
    disk: _Gate


class Bookkeeping(Struct):
    """The bookkeeping of `train.session`. Other keys are not checked."""

    light: _Period
    full: _Period
    replay_log: _Period
    elapsed_seconds: Annotated[float, Meta(ge=0)]
    total_frames: Annotated[int, Meta(ge=1, le=MOST_INT)]
    finished: bool
    tables: dict[str, Count]
    scores: list[tuple[Count, _Score]]
    score_protocol: str | None
    watch: _Gates
    game: str = ""
    files: dict[str, FileRecord] = {}
    recent_batch: _RecentBatch | None = None
    inspected: list[Count] = []
    ale_versions: list[tuple[Count, str]] = []
    torch_threads: Annotated[int, Meta(ge=1, le=MOST_THREADS)] | None = None


def check_bookkeeping(path: Path, bookkeeping: Any) -> None:
    """Raise `DamagedError` with the manifest `path` and the first invalid key."""
    check_types(path, bookkeeping, Bookkeeping, key="bookkeeping")
    for number, (_, score) in enumerate(bookkeeping["scores"]):
        if len({len(values) for values in score.values()}) > 1:
            raise DamagedError(f"{path}: bookkeeping.scores[{number}]: its lists differ in length")
    recent = bookkeeping.get("recent_batch")
    if recent is not None and len(recent["cell"]) != len(recent["weight"]):
        raise DamagedError(f"{path}: bookkeeping.recent_batch: its lists differ in length")
    _check_tables(path, bookkeeping)


def _check_tables(path: Path, bookkeeping: Any) -> None:
    """Compare `tables` with `files`, which both record the lengths of the tables."""
    files = bookkeeping.get("files", {})
    for name, length in bookkeeping["tables"].items():
        recorded = files.get(f"{name}.csv")
        if recorded is not None and recorded["bytes"] != length:
            raise DamagedError(
                f"{path}: bookkeeping.tables.{name}: found {length}, expected {recorded['bytes']} as in files"
            )
