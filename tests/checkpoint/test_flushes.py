"""What is flushed to disk before a name, a length or a message says that it is there."""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from states import training_state

from atari_dqn.files.atomic import AppendFile, write_atomically
from atari_dqn.files.new_files import write_new
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.lease import LeaseFolder
from atari_dqn.run.leases.owner import Owner
from atari_dqn.scale.takeover import take_over
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.writers import TableSink
from atari_dqn.train.resume_point import ResumePoint
from atari_dqn.train.set_aside import set_aside

Calls = list[tuple[str, int]]
"""Calls that flush, rename or link, each with the inode of its file or directory."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found: Calls = []
    fsync = os.fsync

    def noted_fsync(descriptor: int) -> None:
        found.append(("fsync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    for name, kind in (("rename", "rename"), ("replace", "rename"), ("link", "link")):
        move = getattr(os, name)

        def noted(source: Path, target: Path, move=move, kind=kind) -> None:
            found.append((kind, os.lstat(source).st_ino))
            move(source, target)

        monkeypatch.setattr(os, name, noted)
    return found


def inode(path: Path) -> int:
    return path.stat().st_ino


@pytest.mark.parametrize(("write", "naming"), [(write_atomically, "rename"), (write_new, "link")])
def test_file_is_flushed_then_has_its_name_then_its_directory_is_flushed(
    tmp_path: Path, calls: Calls, write: Callable[[Path, bytes], object], naming: str
) -> None:
    write(tmp_path / "file", b"new")
    file = inode(tmp_path / "file")
    assert calls == [("fsync", file), (naming, file), ("fsync", inode(tmp_path))]


@pytest.fixture
def checkpoint(tmp_path: Path, calls: Calls) -> Path:
    """A checkpoint that was saved while calls were recorded."""
    store = CheckpointStore(tmp_path / "checkpoints")
    store.save(step=7, training=training_state(7), bookkeeping={}, eval_score=None)
    return store.latest()


def test_everything_in_a_checkpoint_is_flushed_before_it_has_its_name(checkpoint: Path, calls: Calls) -> None:
    before = calls[: calls.index(("rename", inode(checkpoint)))]
    parts = [checkpoint, *checkpoint.rglob("*")]
    assert [path for path in parts if ("fsync", inode(path)) not in before] == []


def test_name_of_a_checkpoint_is_flushed_before_the_catalog_lists_it(checkpoint: Path, calls: Calls) -> None:
    place = calls.index(("rename", inode(checkpoint)))
    assert calls[place + 1] == ("fsync", inode(checkpoint.parent))


def test_logs_are_flushed_before_their_lengths_are_recorded(tmp_path: Path, calls: Calls) -> None:
    run = RunDirectory.create(tmp_path / "run", "seed = 1\n", "0" * 64, {})
    logs = [run.events, *(run.tables / f"{name}.csv" for name in TABLES)]
    for log in logs:
        log.write_text("a row\n")
    calls.clear()
    run.file_records()
    assert {("fsync", inode(path)) for path in (*logs, run.path)} <= set(calls)


def test_rows_are_flushed_before_their_lengths_are_those_of_a_checkpoint(
    tmp_path: Path, calls: Calls
) -> None:
    with closing(TableSink(tmp_path)) as tables:
        calls.clear()
        tables.state_dict()
    assert {("fsync", inode(tmp_path / f"{name}.csv")) for name in TABLES} <= set(calls)


def test_truncated_file_is_flushed(tmp_path: Path, calls: Calls) -> None:
    file = AppendFile(tmp_path / "log")
    file.append(b"two rows\n")
    file.truncate(0)
    file.close()
    assert calls == [("fsync", inode(tmp_path / "log"))]


def test_damaged_log_that_is_moved_aside_is_flushed_in_both_directories(tmp_path: Path, calls: Calls) -> None:
    run = RunDirectory.create(tmp_path / "run", "seed = 1\n", "0" * 64, {})
    run.events.write_text("damaged\n")
    damaged = (run.events.name,)
    calls.clear()
    set_aside(ResumePoint(run=run, checkpoint=None, step=0, bookkeeping={}, damaged_logs=damaged))
    moved = inode(run.set_aside / run.events.name)
    assert calls == [("rename", moved), ("fsync", inode(run.set_aside)), ("fsync", inode(run.path))]


def test_new_lease_is_flushed_before_it_has_its_name(tmp_path: Path, calls: Calls) -> None:
    held = LeaseFolder(tmp_path).take("pong", Owner.current())
    assert held is not None
    with closing(held):
        assert calls == [("fsync", inode(held.path)), ("link", inode(held.path))]


def test_copy_of_a_log_is_flushed_before_it_replaces_the_log(tmp_path: Path, calls: Calls) -> None:
    run = RunDirectory.create(tmp_path / "run", "seed = 1\n", "0" * 64, {})
    run.events.write_text("a notice\n")
    leases = LeaseFolder(tmp_path)
    stale = leases.take("run", replace(Owner.current(), machine="another machine"))
    assert stale is not None
    held = leases.take("run", Owner.current(), over=stale.lease)
    assert held is not None
    with closing(stale), closing(held):
        calls.clear()
        take_over(run, stale.lease, held)
    copy = inode(run.events)
    assert ("fsync", copy) in calls[: calls.index(("rename", copy))]
