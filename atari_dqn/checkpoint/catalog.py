"""catalog.json: what checkpoints there are, and which of them are worth keeping."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from atari_dqn.errors import DamagedError
from atari_dqn.files import write_json_atomically

CATALOG = "catalog.json"


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


def read_catalog(folder: Path) -> list[CatalogEntry]:
    """Return what is kept in a folder, oldest first. `DamagedError` if its catalog is none."""
    path = folder / CATALOG
    if not path.exists():
        return []
    try:
        entries = [CatalogEntry(**entry) for entry in json.loads(path.read_text())]
        # a path is removed once its checkpoint is not worth keeping: nothing else may stand there
        foreign = [entry.path for entry in entries if entry.path != f"step_{entry.step:09d}"]
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedError(f"{path}: is no catalog of checkpoints") from error
    if foreign:
        raise DamagedError(f"{path}: is no catalog of checkpoints: it lists {foreign[0]!r}")
    return entries


def write_catalog(folder: Path, entries: Sequence[CatalogEntry]) -> None:
    """Replace a folder's catalog in one step. `UserError` if it cannot be written."""
    write_json_atomically(folder / CATALOG, [asdict(entry) for entry in entries])


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
