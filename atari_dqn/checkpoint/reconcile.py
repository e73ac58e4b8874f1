"""Reconciling the catalog with the checkpoints that are there.

The catalog is an index of the manifests, and they are what counts: where it is damaged or disagrees, its
entries are made from them, and a whole checkpoint that it does not list is listed. So no word of a catalog
costs a whole checkpoint, and one that a killed process had put in place but not listed yet is the newest
(docs/decisions/0039).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atari_dqn.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.checkpoint.catalog import CATALOG, CatalogEntry, read_catalog
from atari_dqn.checkpoint.manifest import MANIFEST, read_manifest, verify
from atari_dqn.errors import DamagedError
from atari_dqn.files import is_file
from atari_dqn.scores import EvaluationScore


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """The checkpoints of a folder, whatever its catalog says."""

    entries: tuple[CatalogEntry, ...]
    """Oldest first."""
    remarks: tuple[str, ...]
    """In what the entries are not the catalog's, as sentences for people; empty where they are."""
    lost: Path | None
    """The newest checkpoint, if it is not whole and no catalog says whether it ever was; it is no entry."""


def reconcile(folder: Path) -> Reconciled:
    """Return the checkpoints of a folder; nothing on disk is changed."""
    listed, damage = _listed(folder)
    there = [*checkpoint_directories(folder)]
    entries = dict(_of_manifests(there, {entry.path: entry for entry in listed}))
    newest = max(entries, default="")
    gone = [entry for entry in listed if entry.path not in entries]
    entries.update({entry.path: entry for entry in gone if entry.path > newest})
    remarks = [damage] if damage else [*_disagreements(listed, entries)]
    return Reconciled(
        entries=tuple(entries[name] for name in sorted(entries)),
        remarks=tuple(remarks),
        lost=_lost(folder, newest) if damage else None,
    )


def checkpoint_directories(folder: Path) -> list[Path]:
    """Return every directory that is named as a checkpoint and has a manifest, oldest first."""
    return sorted(path for path in folder.glob("step_*") if is_file(path / MANIFEST))


def is_whole(checkpoint: Path) -> bool:
    """Return whether every file of a checkpoint is what its manifest says, and it lies in its own place.

    `UserError` where the system refuses to read a file: that does not say whether the checkpoint is whole.
    """
    if not is_file(checkpoint / MANIFEST):
        return False
    try:
        manifest = verify(checkpoint)
        check_bookkeeping(checkpoint / MANIFEST, manifest["bookkeeping"])
    except DamagedError:
        return False
    return checkpoint.name == f"step_{manifest['step']:09d}"


def catalog_is_lost(folder: Path) -> bool:
    """Return whether a folder has no catalog though a checkpoint was finished.

    A process that is killed in its first save leaves one checkpoint that neither catalog nor link knows.
    """
    finished = (folder / "latest").is_symlink() or len(checkpoint_directories(folder)) > 1
    return finished and not is_file(folder / CATALOG)


def _listed(folder: Path) -> tuple[list[CatalogEntry], str]:
    """Return the catalog's entries, and what is wrong with it as a whole."""
    if catalog_is_lost(folder):
        return [], f"{CATALOG} was missing; it is made again from the checkpoints"
    try:
        return read_catalog(folder), ""
    except DamagedError as error:
        return [], f"{error}; it is made again from the checkpoints"


def _of_manifests(there: list[Path], listed: dict[str, CatalogEntry]) -> Iterator[tuple[str, CatalogEntry]]:
    """Yield the entry of each checkpoint that is listed or whole."""
    for directory in there:
        known = listed.get(directory.name)
        if known is None and not is_whole(directory):
            continue
        try:
            yield directory.name, _entry(directory, read_manifest(directory), known)
        except DamagedError:
            if known is not None:  # whoever loads it is to meet the error
                yield directory.name, known


def _entry(directory: Path, manifest: dict[str, Any], known: CatalogEntry | None) -> CatalogEntry:
    """Return what a manifest says of its checkpoint; `DamagedError` where it is of no run."""
    step, bookkeeping = manifest["step"], manifest["bookkeeping"]
    if directory.name != f"step_{step:0>9}":
        raise DamagedError(f"{directory / MANIFEST}: is of step {step}, in the place of another")
    try:
        scores = dict(bookkeeping.get("scores", []))
        score = EvaluationScore.of_state(scores[step]).mean_return if step in scores else None
        protocol = bookkeeping["score_protocol"] if step in scores else None
        inspected = step in bookkeeping.get("inspected", [])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{directory / MANIFEST}: its bookkeeping is no run's ({error})") from error
    kept_tag = known.tag if known else None
    return CatalogEntry(
        step=step,
        path=directory.name,
        eval_score=score,
        protocol=protocol,
        timestamp=known.timestamp if known else manifest["timestamp"],
        tag="inspect" if inspected else kept_tag,
    )


def _disagreements(listed: list[CatalogEntry], entries: dict[str, CatalogEntry]) -> Iterator[str]:
    known = {entry.path: entry for entry in listed}
    for path, entry in sorted(entries.items()):
        if path not in known:
            yield f"{path} is whole though {CATALOG} did not list it; it is listed now"
        elif known[path] != entry:
            yield f"{CATALOG} differed from the manifest of {path}, which is followed"
    for path in sorted(known.keys() - entries.keys()):
        yield f"{path} is gone though {CATALOG} listed it; it is listed no longer"


def _lost(folder: Path, newest_entry: str) -> Path | None:
    """Return the newest checkpoint that was there, if it is newer than the newest that is whole."""
    names = [path.name for path in folder.glob("step_*")]
    latest = folder / "latest"
    if latest.is_symlink():
        names.append(latest.readlink().name)
    newest = max(names, default="")
    return folder / newest if newest > newest_entry else None
