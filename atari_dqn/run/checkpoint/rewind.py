"""Rewind a run to a checkpoint: later checkpoints are removed from the catalog and the disk."""

from __future__ import annotations

from pathlib import Path

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import is_file
from atari_dqn.files.failures import reading
from atari_dqn.run.checkpoint.catalog import CATALOG, write_catalog
from atari_dqn.run.checkpoint.names import linked_name, named_step, refuse_missing_manifest
from atari_dqn.run.checkpoint.reconcile import catalog_is_lost, checkpoint_directories, reconcile
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.guard import check_lease


def named_checkpoint(store: CheckpointStore, name: str) -> Path:
    """Return the checkpoint `name`: `latest`, `best` or a directory; raise `UserError` if there is none."""
    known = {path.name: path for path in checkpoint_directories(store.folder)}
    links = {link: linked_name(store.folder / link) for link in ("latest", "best")}
    target = links.get(name, name)
    if target is None or target not in known:
        there = ", ".join([*known, *(link for link, aim in links.items() if aim in known)])
        raise UserError(f"{store.folder}: no checkpoint {name!r}; there are: {there or 'none'}")
    return known[target]


def refuse_lost_catalog(store: CheckpointStore) -> None:
    """Raise `DamagedError` if the catalog is missing although checkpoints were finished."""
    if catalog_is_lost(store.folder):
        raise DamagedError(f"{store.folder / CATALOG}: missing, although there are checkpoints")


def refuse_empty_store(run: RunDirectory) -> None:
    """Raise `DamagedError` if a run has no checkpoint although a directory or its event log names one.

    `UserError` if the folder of checkpoints cannot be read.
    """
    if checkpoint_directories(run.checkpoints):
        return
    with reading(run.checkpoints):  # a folder that may not be read is not empty
        found = list(run.checkpoints.iterdir()) if run.checkpoints.is_dir() else []
    named = [path for path in found if named_step(path.name) >= 0 and path.is_dir()]
    if named:
        refuse_missing_manifest(max(named, key=lambda path: named_step(path.name)))
    if is_file(run.events) and b'"kind": "checkpoint"' in run.events.read_bytes():
        raise DamagedError(f"{run.checkpoints}: empty, although {run.events.name} lists checkpoints")


def rewind(store: CheckpointStore, step: int) -> tuple[str, ...]:
    """Make the checkpoint of `step` the latest, and remove later ones.

    Return the repairs of the catalog as sentences for the user.
    """
    found = reconcile(store.folder)
    check_lease()
    write_catalog(store.folder, [entry for entry in found.entries if entry.step <= step])
    store.point_to(step)
    store.tidy()
    return found.remarks
