"""Going back to an earlier checkpoint: what lies after it leaves the catalog and the disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from atari_dqn.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.checkpoint.store import CATALOG, MANIFEST, CatalogEntry, CheckpointStore, read_manifest, verify
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files import is_file, write_json_atomically
from atari_dqn.scores import EvaluationScore


def checkpoint_directories(store: CheckpointStore) -> list[Path]:
    """Return every directory that is named as a checkpoint and has a manifest, oldest first."""
    return sorted(path for path in store.folder.glob("step_*") if is_file(path / MANIFEST))


def named_checkpoint(store: CheckpointStore, name: str) -> Path:
    """Return the checkpoint called `name`: `latest`, `best` or a directory; `UserError` if there is none."""
    known = {path.name: path for path in checkpoint_directories(store)}
    links = {link: (store.folder / link).resolve().name for link in ("latest", "best")}
    target = links.get(name, name)
    if target not in known:
        there = ", ".join([*known, *(link for link, aim in links.items() if aim in known)])
        raise UserError(f"{store.folder}: no checkpoint {name!r}; there are: {there or 'none'}")
    return known[target]


def refuse_wrong_place(checkpoint: Path, step: int) -> None:
    """Raise a `DamagedError` where the directory of a checkpoint is named for another step than its own."""
    if checkpoint.name != f"step_{step:09d}":
        raise DamagedError(f"{checkpoint / MANIFEST}: is of step {step:,}, in the place of another")


def refuse_lost_catalog(store: CheckpointStore) -> None:
    """Raise a `DamagedError` where the catalog is missing though checkpoints were finished.

    A process that dies in its first save leaves one checkpoint that neither catalog nor link knows.
    """
    finished = (store.folder / "latest").is_symlink() or len(checkpoint_directories(store)) > 1
    if finished and not is_file(store.folder / CATALOG):
        raise DamagedError(f"{store.folder / CATALOG}: missing, though there are checkpoints")


def later_checkpoints(store: CheckpointStore, step: int) -> list[Path]:
    """Return the checkpoints of steps after `step`, oldest first."""
    return [path for path in checkpoint_directories(store) if path.name > f"step_{step:09d}"]


def is_whole(checkpoint: Path) -> bool:
    """Return whether every file of a checkpoint is what its manifest says, and that is of use."""
    try:
        check_bookkeeping(checkpoint / MANIFEST, verify(checkpoint)["bookkeeping"])
    except (DamagedError, UserError):
        return False
    return True


def rewind(store: CheckpointStore, step: int) -> None:
    """Make the checkpoint of `step` the latest, and remove what lies after it.

    A catalog that is damaged or missing is made again from the manifests.
    """
    entries = [entry for entry in _entries(store) if entry.step <= step]
    write_json_atomically(store.folder / CATALOG, [asdict(entry) for entry in entries])
    store.point_to(step)
    store.tidy()


def _entries(store: CheckpointStore) -> list[CatalogEntry]:
    try:
        refuse_lost_catalog(store)
        return store.catalog()
    except DamagedError:
        return list(_entries_of_manifests(store))


def _entries_of_manifests(store: CheckpointStore) -> Iterator[CatalogEntry]:
    for directory in checkpoint_directories(store):
        if not is_whole(directory):
            continue
        manifest = read_manifest(directory)
        scores = {
            step: EvaluationScore.of_state(values) for step, values in manifest["bookkeeping"]["scores"]
        }
        score = scores.get(manifest["step"])
        yield CatalogEntry(
            step=manifest["step"],
            path=directory.name,
            eval_score=score.mean_return if score else None,
            protocol=manifest["bookkeeping"]["score_protocol"] if score else None,
            timestamp=manifest["timestamp"],
        )
