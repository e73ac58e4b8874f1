"""Reconcile the catalog with the checkpoints on disk.

The catalog is an index of the manifests, and the manifests take precedence: where the catalog is damaged or
disagrees with them, its entries are rebuilt from them. An intact checkpoint that the catalog does not list is
added to it, and so is an earlier one of which only the agent is. So a wrong catalog never loses an agent that
its manifest confirms, and a checkpoint that a killed process put in place but had not listed yet is found as
the newest (docs/decisions/0039).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import is_file
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.catalog import CATALOG, CatalogEntry, read_catalog
from atari_dqn.run.checkpoint.manifest import read_manifest, verify
from atari_dqn.run.checkpoint.names import MANIFEST, checkpoint_name, named_step
from atari_dqn.run.checkpoint.state_files import AGENT
from atari_dqn.run.scores import EvaluationScore


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """The checkpoints of a folder, after its catalog was compared with the manifests."""

    entries: tuple[CatalogEntry, ...]
    """Oldest first."""
    remarks: tuple[str, ...]
    """Each difference between the entries and the catalog, as a sentence for the user."""
    lost: Path | None
    """The newest checkpoint, if it is not among the entries, because it is damaged and not listed, and the
    catalog is unusable or a later checkpoint than the entries has an agent."""


def reconcile(folder: Path) -> Reconciled:
    """Compare the catalog of a folder with its checkpoints. Nothing on disk is changed."""
    listed, damage = _listed(folder)
    directories = checkpoint_directories(folder)
    entries = dict(_entries_of_manifests(directories, {entry.path: entry for entry in listed}))
    newest = max(map(named_step, entries), default=-1)
    entries.update(_entries_of_agents([path for path in directories if path.name not in entries], newest))
    missing = [entry for entry in listed if entry.path not in entries]
    entries.update({entry.path: entry for entry in missing if entry.step > newest})
    remarks = [damage] if damage else [*_disagreements(listed, entries)]
    return Reconciled(
        entries=tuple(entries[name] for name in sorted(entries, key=named_step)),
        remarks=tuple(remarks),
        lost=_lost(folder, newest) if damage or later_agents(folder, newest) else None,
    )


def checkpoint_directories(folder: Path) -> list[Path]:
    """Return every directory that has a checkpoint's name and a manifest, oldest first."""
    found = [path for path in folder.glob("step_*") if is_file(path / MANIFEST)]
    return sorted(found, key=lambda path: named_step(path.name))


def later_agents(folder: Path, step: int) -> list[str]:
    """Return the names of the checkpoints after `step` whose agents are not known to be damaged.

    They are worth keeping although training may not be able to resume from them, for example without a
    replay. Oldest first.
    """
    later = [path for path in folder.glob("step_*") if named_step(path.name) > step]
    return [path.name for path in sorted(later, key=lambda path: named_step(path.name)) if _has_agent(path)]


def _has_agent(checkpoint: Path) -> bool:
    if not is_file(checkpoint / AGENT):
        return False
    try:
        read_manifest(checkpoint)
    except (UserError, DamagedError):  # it may be restored, or be that of a later version
        return True
    try:
        verify(checkpoint, only=[AGENT])
    except DamagedError:
        return False
    except UserError:  # it cannot be read at present
        return True
    return True


def is_intact(checkpoint: Path) -> bool:
    """Return whether every file of a checkpoint matches its manifest, and its directory's name fits.

    Raise `UserError` if a file cannot be read, because the checkpoint may still be intact.
    """
    if not is_file(checkpoint / MANIFEST):
        return False
    try:
        manifest = verify(checkpoint)
        check_bookkeeping(checkpoint / MANIFEST, manifest["bookkeeping"])
        refuse_wrong_place(checkpoint, manifest["step"])
    except DamagedError:
        return False
    return True


def refuse_wrong_place(checkpoint: Path, step: int) -> None:
    """Raise `DamagedError` if the directory of a checkpoint is named for another step than its own."""
    if checkpoint.name != checkpoint_name(step):
        raise DamagedError(
            f"{checkpoint / MANIFEST}: is of step {step:,}, but the directory is named for another"
        )


def catalog_is_lost(folder: Path) -> bool:
    """Return whether a folder has no catalog although a checkpoint was finished.

    A single checkpoint without a `latest` link does not count: a process that is killed during its first save
    leaves one before it writes link and catalog.
    """
    finished = (folder / "latest").is_symlink() or len(checkpoint_directories(folder)) > 1
    return finished and not is_file(folder / CATALOG)


def _listed(folder: Path) -> tuple[list[CatalogEntry], str]:
    """Return the entries of the catalog, and why it cannot be used (empty if it can)."""
    if catalog_is_lost(folder):
        return [], f"{CATALOG} was missing; it is rebuilt from the checkpoints"
    try:
        return read_catalog(folder), ""
    except DamagedError as error:
        return [], f"{error}; it is rebuilt from the checkpoints"


def _entries_of_manifests(
    directories: list[Path], listed: dict[str, CatalogEntry]
) -> Iterator[tuple[str, CatalogEntry]]:
    """Yield the entry of each checkpoint that is listed or intact, by the name of its directory."""
    for directory in directories:
        known = listed.get(directory.name)
        if known is None and not is_intact(directory):
            continue
        try:
            yield directory.name, _entry(directory, read_manifest(directory), known)
        except DamagedError:
            if known is not None:  # the error is raised when the checkpoint is loaded
                yield directory.name, known


def _entries_of_agents(directories: list[Path], newest: int) -> Iterator[tuple[str, CatalogEntry]]:
    """Yield the entry of each checkpoint before step `newest` whose agent is intact, though others are not.

    Training cannot resume from them, for example because their replay was removed to save space. A later one
    is not listed, because the newest entry is the one that a run resumes from.
    """
    for directory in directories:
        if named_step(directory.name) >= newest or not is_file(directory / AGENT):
            continue
        try:
            manifest = verify(directory, only=[AGENT])
            check_bookkeeping(directory / MANIFEST, manifest["bookkeeping"])
            yield directory.name, _entry(directory, manifest, None)
        except DamagedError:
            continue


def _entry(directory: Path, manifest: dict[str, Any], known: CatalogEntry | None) -> CatalogEntry:
    """Return the entry that a manifest describes; `DamagedError` if a run did not write the manifest."""
    step, bookkeeping = manifest["step"], manifest["bookkeeping"]
    refuse_wrong_place(directory, step)
    try:
        scores = dict(bookkeeping.get("scores", []))
        score = EvaluationScore.of_state(scores[step]).mean_return if step in scores else None
        protocol = bookkeeping["score_protocol"] if step in scores else None
        inspected = step in bookkeeping.get("inspected", [])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(
            f"{directory / MANIFEST}: its bookkeeping is not that of a run ({error})"
        ) from error
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
    """Yield a sentence for each entry that was added, changed or removed."""
    known = {entry.path: entry for entry in listed}
    for path, entry in sorted(entries.items()):
        if path not in known:
            yield f"{CATALOG} did not list {path}; it is added"
        elif known[path] != entry:
            yield f"{CATALOG} differed from the manifest of {path}; the manifest is used"
    for path in sorted(known.keys() - entries.keys()):
        yield f"{path} does not exist, but {CATALOG} listed it; the entry is removed"


def _lost(folder: Path, newest_entry: int) -> Path | None:
    """Return the newest checkpoint by its name or the `latest` link, if it is newer than the newest entry."""
    names = [path.name for path in folder.glob("step_*")]
    latest = folder / "latest"
    if latest.is_symlink():
        names.append(latest.readlink().name)
    newest = max(names, key=named_step, default="")
    return folder / newest if named_step(newest) > newest_entry else None
