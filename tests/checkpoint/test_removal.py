"""Checkpoints are removed as far as the file system allows, and only those that the run no longer needs."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from states import training_state

from atari_dqn.run.checkpoint.store import CheckpointStore, Saved


def save(store: CheckpointStore, step: int) -> Saved:
    store.begin(step=step, training=training_state(step), bookkeeping={}, eval_score=None)
    saved = store.finish()
    assert saved is not None
    return saved


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path / "checkpoints", keep_last=1)
    save(store, 1)
    return store


class BusyFolders:
    """No folder can be removed, as on a network disk while another program has a file of it open."""

    def __init__(self) -> None:
        self.are_busy, self._rmdir = True, os.rmdir

    def rmdir(self, path: Any, **options: Any) -> None:
        if self.are_busy:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        self._rmdir(path, **options)


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> BusyFolders:
    folders = BusyFolders()
    monkeypatch.setattr(os, "rmdir", folders.rmdir)
    return folders


@pytest.mark.usefixtures("folders")
def test_a_checkpoint_that_cannot_be_removed_is_named_by_the_next(store: CheckpointStore):
    (leftover,) = save(store, 2).leftovers
    assert leftover.name.startswith(".step_000000001.removed.")


@pytest.mark.parametrize("again", [lambda store: save(store, 3), CheckpointStore.tidy])
def test_a_checkpoint_that_could_not_be_removed_is_removed_later(
    store: CheckpointStore, folders: BusyFolders, again: Callable[[CheckpointStore], object]
):
    save(store, 2)
    folders.are_busy = False
    again(store)
    assert not list(store.folder.glob(".*"))


def test_a_save_leaves_a_later_checkpoint_of_a_process_that_has_taken_the_run_over(store: CheckpointStore):
    later = store.folder / "step_000000009"
    shutil.copytree(store.latest(), later)
    save(store, 2)
    assert later.is_dir()
