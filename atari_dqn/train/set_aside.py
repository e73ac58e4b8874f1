"""Setting damaged logs aside: each is kept in a folder of the run, and a new one takes its place.

The order makes it safe to be killed: until every checkpoint has forgotten the old log, a resume without the
option refuses again, and one with it does the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import exists, fsync_directory, unused, writing
from atari_dqn.run.checkpoint.manifest import read_manifest, replace_bookkeeping
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.csv_table import CsvTable
from atari_dqn.train.resumption import Point
from atari_dqn.types import StateDict


def set_aside(point: Point) -> tuple[Point, dict[str, str]]:
    """Keep a point's damaged logs aside and begin new ones.

    Return the point that knows the new ones, and by the name of each log what became of it, for people.
    """
    if not point.damaged_logs:
        return point, {}
    kept = {name: _keep(point.run, name) for name in point.damaged_logs}
    bookkeeping = _without(point.bookkeeping, kept, _begin_tables(point.run, kept))
    return replace(point, bookkeeping=bookkeeping), kept


def forget_logs(run: RunDirectory, point: Point, names: Collection[str]) -> None:
    """Have every checkpoint know no more of the old logs, and where the rows of the new ones begin."""
    if not names:
        return
    offsets = {name: point.bookkeeping["tables"][name] for name in _tables(names)}
    for checkpoint in checkpoint_directories(run.checkpoints):
        with suppress(DamagedError):  # it cannot be gone on from
            bookkeeping = read_manifest(checkpoint)["bookkeeping"]
            replace_bookkeeping(checkpoint, _without(bookkeeping, names, offsets))


def _keep(run: RunDirectory, name: str) -> str:
    path = run.path / name
    if not exists(path):
        return "there was nothing left of it to keep"
    with writing(run.set_aside):
        run.set_aside.mkdir(exist_ok=True)
        place = unused(run.set_aside / name)
        path.rename(place)
        fsync_directory(run.set_aside)
        fsync_directory(run.path)
    return f"it is kept as {place.relative_to(run.path)}"


def _tables(names: Collection[str]) -> list[str]:
    return [table for table in TABLES if f"{table}.csv" in names]


def _begin_tables(run: RunDirectory, names: Collection[str]) -> dict[str, int]:
    """Begin the new tables, and return where their rows begin."""
    return {table: _begin(run.tables / f"{table}.csv", table) for table in _tables(names)}


def _begin(path: Path, table: str) -> int:
    with closing(CsvTable(path, column_names(table))) as begun:
        begun.sync()
        return begun.offset()


def _without(bookkeeping: StateDict, logs: Collection[str], offsets: Mapping[str, int]) -> StateDict:
    files = {name: record for name, record in bookkeeping.get("files", {}).items() if name not in logs}
    return {**bookkeeping, "files": files, "tables": {**bookkeeping.get("tables", {}), **offsets}}
