"""The checkpoints of a run: saved beside their place and renamed into it, so one is whole or absent."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from atari_dqn.checkpoint.files import read_agent, read_rest, write_state
from atari_dqn.checkpoint.tree import leaf_digest, tree_digest
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files import (
    fsync_directory,
    json_document,
    plain,
    sha256_of_file,
    write_json_atomically,
    writing,
)
from atari_dqn.types import StateDict

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
CATALOG = "catalog.json"
_SEAL = "manifest_sha256"
_MANIFEST_KEYS = ("step", "state_digest", "timestamp", "files", "bookkeeping", _SEAL)


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One line of catalog.json."""

    step: int
    path: str
    eval_score: float | None
    """Mean return of the full evaluation at this step; None where there was none."""
    timestamp: str
    """UTC, ISO 8601."""
    protocol: str | None = None
    """Fingerprint of the protocol of `eval_score`."""
    tag: str | None = None
    """`inspect` where a failure gate asked for a look at it; None otherwise."""


class CheckpointStore:
    """The folder `checkpoints/` of a run directory."""

    def __init__(self, folder: Path, *, keep_last: int = 1) -> None:
        self.folder, self.keep_last = folder, keep_last

    def save(
        self,
        *,
        step: int,
        training: StateDict,
        bookkeeping: StateDict,
        eval_score: float | None,
        protocol: str | None = None,
        tag: str | None = None,
    ) -> str:
        """Save a state and return its digest. `UserError` if the disk refuses; what was there stays whole.

        The digest is of `training` alone: `bookkeeping`, plain values, holds what may differ between equal
        runs, such as elapsed time. Of a step that is saved already only the bookkeeping is written again,
        and the score if one is given.
        """
        name = f"step_{step:09d}"
        with writing(self.folder / name):
            saved = next((entry for entry in self.catalog() if entry.step == step), None)
            if saved is None:
                digest = tree_digest(training)
                self._write(self.folder / name, step, digest, training, bookkeeping)
            else:
                digest = _write_bookkeeping(self.folder / name, bookkeeping)
            if saved is None or eval_score is not None:
                entry = CatalogEntry(
                    step=step, path=name, eval_score=eval_score, timestamp=_now(), protocol=protocol, tag=tag
                )
                self._enter(entry)
            self._point("latest", name)
            self._point_to_best()
            self._prune()
        return digest

    def point_to(self, step: int) -> None:
        """Make the checkpoint of a step the latest."""
        with writing(self.folder / "latest"):
            self._point("latest", f"step_{step:09d}")

    def tidy(self) -> None:
        """Remove what a process that died left behind. Call it while no other process saves."""
        listed = {entry.path for entry in self.catalog()}
        for path in [*self.folder.glob(".*.partial"), *self.folder.glob("step_*")]:
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            elif path.name not in listed:
                shutil.rmtree(path)

    def catalog(self) -> list[CatalogEntry]:
        """Return what is kept, oldest first."""
        path = self.folder / CATALOG
        if not path.exists():
            return []
        try:
            return [CatalogEntry(**entry) for entry in json.loads(path.read_text())]
        except (ValueError, TypeError) as error:
            raise DamagedError(f"{path}: is no catalog of checkpoints") from error

    def latest(self) -> Path:
        """Return the newest checkpoint, from the catalog where the link is lost.

        `UserError` if none was saved, `DamagedError` if the one there should be is not.
        """
        link = self.folder / "latest"
        if link.exists():
            path = link.resolve()
        elif entries := self.catalog():
            path = self.folder / entries[-1].path
        else:
            raise UserError(f"{self.folder}: nothing was saved before the run ended; begin another")
        if not (path / MANIFEST).is_file():
            raise DamagedError(f"{path / MANIFEST}: missing")
        return path

    def best(self) -> Path | None:
        """Return the checkpoint of the best full evaluation, if there was one."""
        path = self.folder / "best"
        return path.resolve() if path.exists() else None

    def _write(
        self, final: Path, step: int, digest: str, training: StateDict, bookkeeping: StateDict
    ) -> None:
        partial = final.with_name(f".{final.name}.partial")
        for left_over in (partial, final):  # by a process that died before the catalog listed it
            shutil.rmtree(left_over, ignore_errors=True)
        try:
            partial.mkdir(parents=True)
            rest = {key: part for key, part in training.items() if key != "learner"}
            write_state(partial, training["learner"], rest)
            manifest = {**_manifest(partial, step, digest), "bookkeeping": bookkeeping}
            (partial / MANIFEST).write_bytes(json_document(sealed(manifest)))
            _flush(partial)
            partial.rename(final)
            fsync_directory(self.folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def _enter(self, entry: CatalogEntry) -> None:
        # A later step than the newest is of a past that a crash cut off from `latest`: it is played again.
        earlier = [known for known in self.catalog() if known.step < entry.step]
        write_json_atomically(self.folder / CATALOG, [asdict(known) for known in [*earlier, entry]])

    def _point(self, link: str, name: str) -> None:
        """Switch a symlink in one step."""
        fresh = self.folder / f".{link}.partial"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(name)
        fresh.replace(self.folder / link)

    def _point_to_best(self) -> None:
        scored = [entry for entry in self.catalog() if entry.eval_score is not None]
        if scored:
            # Of several that are equal, the earliest: a later one has proved nothing more.
            self._point("best", max(scored, key=lambda entry: (entry.eval_score, -entry.step)).path)

    def _prune(self) -> None:
        """Remove all but the newest checkpoints, the best one, and the newest with a tag."""
        entries = self.catalog()
        best = self.best()
        tagged = [entry for entry in entries if entry.tag is not None]
        kept = [
            entry
            for place, entry in enumerate(entries, start=1)
            if place > len(entries) - self.keep_last
            or (best is not None and entry.path == best.name)
            or entry in tagged[-1:]
        ]
        write_json_atomically(self.folder / CATALOG, [asdict(entry) for entry in kept])
        for entry in entries:
            if entry not in kept:
                shutil.rmtree(self.folder / entry.path)


def load_checkpoint(directory: Path, device: torch.device) -> tuple[StateDict, StateDict]:
    """Return the training state and the bookkeeping of a checkpoint, every file verified first."""
    manifest = verify(directory)
    training = {**read_rest(directory), "learner": read_agent(directory, device)}
    return training, manifest["bookkeeping"]


def verify(directory: Path) -> dict[str, Any]:
    """Return the manifest once every file matches it; `DamagedError` names the first that does not."""
    manifest = read_manifest(directory)
    for name, expected in manifest["files"].items():
        path = directory / name
        if not path.is_file():
            raise DamagedError(f"{path}: missing")
        if path.stat().st_size != expected["bytes"] or sha256_of_file(path) != expected["sha256"]:
            raise DamagedError(f"{path}: is not what {MANIFEST} says; the file is damaged")
    return manifest


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return a checkpoint's manifest. `UserError` if there is none, `DamagedError` if it cannot be used."""
    path = directory / MANIFEST
    if not path.is_file():
        raise UserError(f"{directory} is no checkpoint: it holds no {MANIFEST}")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        version = manifest["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path}: is no manifest of a checkpoint ({error})") from error
    if version != SCHEMA_VERSION:
        raise DamagedError(f"{path}: schema version {version}; this program reads {SCHEMA_VERSION}")
    missing = [key for key in _MANIFEST_KEYS if key not in manifest]
    if missing:
        raise DamagedError(f"{path}: is no manifest of a checkpoint (it lacks {', '.join(missing)})")
    if sealed(manifest)[_SEAL] != manifest[_SEAL]:
        raise DamagedError(f"{path}: is not what was written; the file is damaged")
    return manifest


def _write_bookkeeping(directory: Path, bookkeeping: StateDict) -> str:
    """Replace a checkpoint's bookkeeping, in one step, and return its digest."""
    manifest = read_manifest(directory)
    write_json_atomically(directory / MANIFEST, sealed({**manifest, "bookkeeping": bookkeeping}))
    return str(manifest["state_digest"])


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest with a digest of itself, so that damage to it shows too."""
    contents = {key: value for key, value in plain(manifest).items() if key != _SEAL}
    return {**contents, _SEAL: leaf_digest(contents)}


def _manifest(directory: Path, step: int, digest: str) -> dict[str, Any]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        "schema_version": SCHEMA_VERSION,
        "step": step,
        "state_digest": digest,
        "timestamp": _now(),
        "files": {
            path.relative_to(directory).as_posix(): {
                "sha256": sha256_of_file(path),
                "bytes": path.stat().st_size,
            }
            for path in files
        },
    }


def _flush(directory: Path) -> None:
    """Wait until the disk holds every file and name below a directory."""
    for path in [*directory.rglob("*"), directory]:
        if path.is_dir():
            fsync_directory(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
