"""Set damaged logs aside: move each to a folder of the run, and replace it by a new one.

The order makes this safe against kills: until every checkpoint has dropped its record of the old log, a
resume without the option is refused, and one with it completes the work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import exists, fsync_directory
from atari_dqn.files.failures import writing
from atari_dqn.files.new_files import unused
from atari_dqn.run.checkpoint.manifest import read_manifest, replace_bookkeeping
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.csv_table import CsvTable
from atari_dqn.train.resume_point import ResumePoint
from atari_dqn.types import StateDict


def set_aside(point: ResumePoint) -> tuple[ResumePoint, dict[str, str]]:
    """Move the damaged logs of a point aside and start new ones.

    Return the point with the new logs, and for each log a description of what was done with it.
    """
    if not point.damaged_logs:
        return point, {}
    moved = {name: _move_aside(point.run, name) for name in point.damaged_logs}
    bookkeeping = _without(point.bookkeeping, moved, _create_tables(point.run, moved))
    return replace(point, bookkeeping=bookkeeping), moved


def forget_logs(run: RunDirectory, point: ResumePoint, names: Collection[str]) -> None:
    """Replace the records of the old logs in every checkpoint by the beginnings of the new ones."""
    if not names:
        return
    offsets = {name: point.bookkeeping["tables"][name] for name in _tables(names)}
    for checkpoint in checkpoint_directories(run.checkpoints):
        with suppress(DamagedError):  # a damaged checkpoint cannot be resumed from anyway
            bookkeeping = read_manifest(checkpoint)["bookkeeping"]
            replace_bookkeeping(checkpoint, _without(bookkeeping, names, offsets))


def _move_aside(run: RunDirectory, name: str) -> str:
    path = run.path / name
    if not exists(path):
        return "it no longer existed"
    with writing(run.set_aside):
        run.set_aside.mkdir(exist_ok=True)
        place = unused(run.set_aside / name)
        path.rename(place)
        fsync_directory(run.set_aside)
        fsync_directory(run.path)
    return f"it was moved to {place.relative_to(run.path)}"


def _tables(names: Collection[str]) -> list[str]:
    return [table for table in TABLES if f"{table}.csv" in names]


def _create_tables(run: RunDirectory, names: Collection[str]) -> dict[str, int]:
    """Create the new tables, and return the offsets of their first rows."""
    return {table: _create(run.tables / f"{table}.csv", table) for table in _tables(names)}


def _create(path: Path, table: str) -> int:
    with closing(CsvTable(path, column_names(table))) as created:
        created.sync()
        return created.offset()


def _without(bookkeeping: StateDict, logs: Collection[str], offsets: Mapping[str, int]) -> StateDict:
    files = {name: record for name, record in bookkeeping.get("files", {}).items() if name not in logs}
    return {**bookkeeping, "files": files, "tables": {**bookkeeping.get("tables", {}), **offsets}}
