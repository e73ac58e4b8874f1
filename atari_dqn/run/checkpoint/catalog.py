"""Read and write catalog.json, the list of checkpoints, and select the checkpoints to keep.

The catalog is an index of the manifests and contains a digest of itself; `reconcile.py` rebuilds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import write_json_atomically
from atari_dqn.files.documents import parse_json, read_run_file
from atari_dqn.files.seal import sealed
from atari_dqn.run.checkpoint.names import checkpoint_name

CATALOG = "catalog.json"
CATALOG_VERSION = 2
"""Version 1, a list of entries without a digest, can still be read."""
_SEAL = "catalog_sha256"


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One checkpoint in catalog.json."""

    step: Annotated[int, msgspec.Meta(ge=0)]
    path: str
    eval_score: float | None
    """Mean return of the full evaluation at this step; None without one."""
    timestamp: str
    """UTC, ISO 8601."""
    protocol: str | None = None
    """Fingerprint of the protocol of `eval_score`."""
    tag: str | None = None
    """`inspect` for a checkpoint saved because a failure gate changed its state; None otherwise."""


@dataclass(frozen=True, kw_only=True)
class _Document:
    """The contents of catalog.json without its digest."""

    schema_version: int
    entries: list[CatalogEntry]


def read_catalog(folder: Path) -> list[CatalogEntry]:
    """Read the catalog of a folder, oldest entry first; raise `DamagedError` if it is invalid."""
    path = folder / CATALOG
    if not path.exists():
        return []
    data = read_run_file(path)
    try:
        entries = _entries(parse_json(data))
    except ValueError as error:  # msgspec's errors are ValueErrors too
        raise DamagedError(f"{path}: is not a catalog of checkpoints ({error})") from error
    return entries


def write_catalog(folder: Path, entries: Sequence[CatalogEntry]) -> None:
    """Replace the catalog of a folder atomically; raise `UserError` if it cannot be written."""
    document = _Document(schema_version=CATALOG_VERSION, entries=list(entries))
    write_json_atomically(folder / CATALOG, sealed(asdict(document), _SEAL))


def best_first(entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
    """Return the entries with a score, best first; the earlier one first if scores are equal."""
    scored = [entry for entry in entries if entry.eval_score is not None]
    return sorted(scored, key=lambda entry: (-(entry.eval_score or 0.0), entry.step))


def entries_to_keep(entries: Sequence[CatalogEntry], *, keep_last: int, keep_best: int) -> list[CatalogEntry]:
    """Return the newest entries, the best ones, and the newest one with a tag; oldest first."""
    tagged = [entry for entry in entries if entry.tag is not None]
    kept = [*entries[-keep_last:], *best_first(entries)[:keep_best], *tagged[-1:]]
    return [entry for entry in entries if entry in kept]


def _entries(document: Any) -> list[CatalogEntry]:
    """Return the entries of a catalog of either version; raise `ValueError` if it is invalid."""
    if isinstance(document, list):
        entries = msgspec.convert(document, list[CatalogEntry])
    else:
        known = msgspec.convert(document, _Document)
        if known.schema_version != CATALOG_VERSION:
            raise ValueError(f"schema version {known.schema_version}, this program reads {CATALOG_VERSION}")
        if sealed(document, _SEAL) != document:
            raise ValueError("it is not what was written")
        entries = known.entries
    _check_paths(entries)
    return entries


def _check_paths(entries: Sequence[CatalogEntry]) -> None:
    """Raise `ValueError` if steps do not ascend, or if a path is not that of a checkpoint.

    Directories of entries are deleted later, so an entry must not name any other directory.
    """
    for entry in entries:
        if entry.path != checkpoint_name(entry.step):
            raise ValueError(f"it lists {entry.path!r}")
    for earlier, later in pairwise(entries):
        if earlier.step >= later.step:
            raise ValueError(f"step {later.step:,} comes after step {earlier.step:,}")
