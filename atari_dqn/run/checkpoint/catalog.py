"""catalog.json: what checkpoints there are, and which of them are worth keeping.

It is an index of the checkpoints' manifests, and sealed as they are; `reconcile.py` makes it anew from them.
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
from atari_dqn.run.checkpoint.seal import sealed

CATALOG = "catalog.json"
CATALOG_VERSION = 2
"""1 was a bare list of entries, without a seal; it is still read."""
_SEAL = "catalog_sha256"


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One line of catalog.json."""

    step: Annotated[int, msgspec.Meta(ge=0)]
    path: str
    eval_score: float | None
    """Mean return of the full evaluation at this step; None where there was none."""
    timestamp: str
    """UTC, ISO 8601."""
    protocol: str | None = None
    """Fingerprint of the protocol of `eval_score`."""
    tag: str | None = None
    """`inspect` where a failure gate asked for a look at it; None otherwise."""


@dataclass(frozen=True, kw_only=True)
class _Document:
    """What catalog.json holds, but for its seal."""

    schema_version: int
    entries: list[CatalogEntry]


def read_catalog(folder: Path) -> list[CatalogEntry]:
    """Return what is kept in a folder, oldest first. `DamagedError` if its catalog is none."""
    path = folder / CATALOG
    if not path.exists():
        return []
    data = read_run_file(path)
    try:
        entries = _entries(parse_json(data))
    except ValueError as error:  # msgspec's errors are values' too
        raise DamagedError(f"{path}: is no catalog of checkpoints ({error})") from error
    return entries


def write_catalog(folder: Path, entries: Sequence[CatalogEntry]) -> None:
    """Replace a folder's catalog in one step. `UserError` if it cannot be written."""
    document = _Document(schema_version=CATALOG_VERSION, entries=list(entries))
    write_json_atomically(folder / CATALOG, sealed(asdict(document), _SEAL))


def best_first(entries: Sequence[CatalogEntry]) -> list[CatalogEntry]:
    """Return the entries with a score, the best first.

    Of several that are equal, the earliest: a later one has proved nothing more.
    """
    scored = [entry for entry in entries if entry.eval_score is not None]
    return sorted(scored, key=lambda entry: (-(entry.eval_score or 0.0), entry.step))


def worth_keeping(entries: Sequence[CatalogEntry], *, keep_last: int, keep_best: int) -> list[CatalogEntry]:
    """Return the newest entries, the best ones, and the newest with a tag; oldest first."""
    tagged = [entry for entry in entries if entry.tag is not None]
    kept = [*entries[-keep_last:], *best_first(entries)[:keep_best], *tagged[-1:]]
    return [entry for entry in entries if entry in kept]


def _entries(document: Any) -> list[CatalogEntry]:
    """Return the entries of a catalog of either version; `ValueError` where it is none."""
    if isinstance(document, list):
        entries = msgspec.convert(document, list[CatalogEntry])
    else:
        known = msgspec.convert(document, _Document)
        if known.schema_version != CATALOG_VERSION:
            raise ValueError(f"schema version {known.schema_version}, this program reads {CATALOG_VERSION}")
        if sealed(document, _SEAL) != document:
            raise ValueError("it is not what was written")
        entries = known.entries
    _check_places(entries)
    return entries


def _check_places(entries: Sequence[CatalogEntry]) -> None:
    """Raise a `ValueError` for steps that do not ascend, and for an entry that is no checkpoint's directory.

    A directory is removed once it is not worth keeping: no entry may name anything else.
    """
    for entry in entries:
        if entry.path != f"step_{entry.step:09d}":
            raise ValueError(f"it lists {entry.path!r}")
    for earlier, later in pairwise(entries):
        if earlier.step >= later.step:
            raise ValueError(f"step {later.step:,} comes after step {earlier.step:,}")
