"""Read and write manifest.json: the contents of a checkpoint with the SHA-256 of each file and of itself."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from atari_dqn.errors import DamagedError, ExplainedDamageError, UserError
from atari_dqn.files import seal
from atari_dqn.files.atomic import exists, is_file, open_regular, sha256_of_file, write_json_atomically
from atari_dqn.files.documents import Count, check_types, parse_json, read_run_file, reading_of_run
from atari_dqn.run.checkpoint.bookkeeping import FileRecord
from atari_dqn.run.checkpoint.names import MANIFEST
from atari_dqn.run.checkpoint.segments import FOLDER, Segment
from atari_dqn.types import StateDict

SCHEMA_VERSION = 2
_SEAL = "manifest_sha256"
_MANIFEST_KEYS = ("step", "state_digest", "timestamp", "replay_saved", "files", "bookkeeping", _SEAL)
_MOST_BYTES = 2**28
"""The largest manifest: every game of every full evaluation is in it, 66 bytes each."""
_READING_THREADS = min(4, os.cpu_count() or 1)

FileName = Annotated[str, Meta(pattern=r"^(agent\.pt|state\.json|arrays/[\w.-]+|replay/[\w.-]+)$")]
"""The relative path of a file below its checkpoint."""


class _Manifest(Struct):
    """Types of a manifest; `bookkeeping.check_bookkeeping` checks the contents of `bookkeeping`."""

    step: Count
    state_digest: str
    timestamp: str
    replay_saved: bool
    files: dict[FileName, FileRecord]
    bookkeeping: dict[str, Any]


def verify(directory: Path, *, only: Collection[str] | None = None) -> dict[str, Any]:
    """Check the files of a checkpoint against its manifest, and return the manifest.

    `only`: the names of the files to check; None for every file. Raise `DamagedError` for a file that is
    missing or differs.
    """
    manifest = read_manifest(directory)
    names = manifest["files"] if only is None else only
    missing = _missing_replay(directory, names)
    present = [name for name in names if name not in missing]
    with ThreadPoolExecutor(_READING_THREADS) as pool:
        list(pool.map(lambda name: _verify_file(directory / name, manifest["files"].get(name)), present))
    if missing:  # reported last, because damage to another file concerns every command
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DamagedError(
            f"{directory}: its replay is missing: {missing[0]}{others}; "
            "only a resume and `dqn verify` need it, other commands do without"
        )
    return manifest


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read a checkpoint's manifest; raise `UserError` if there is none, `DamagedError` if it is invalid."""
    path = directory / MANIFEST
    if not exists(path):
        raise UserError(f"{directory} is not a checkpoint: it contains no {MANIFEST}")
    data = read_run_file(path, most_bytes=_MOST_BYTES)
    try:
        manifest: dict[str, Any] = parse_json(data)
        version = manifest["schema_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path}: is not a manifest of a checkpoint ({error})") from error
    if version != SCHEMA_VERSION:
        raise ExplainedDamageError(
            f"{path}: schema version {version}; this program reads {SCHEMA_VERSION}: "
            "continue with the version of atari_dqn that wrote it (see provenance.json)"
        )
    missing = [key for key in _MANIFEST_KEYS if key not in manifest]
    if missing:
        raise DamagedError(f"{path}: is not a manifest of a checkpoint (it lacks {', '.join(missing)})")
    if sealed(manifest)[_SEAL] != manifest[_SEAL]:
        raise DamagedError(f"{path}: is not what was written; the file is damaged")
    check_types(path, manifest, _Manifest)
    return manifest


def make_manifest(
    directory: Path,
    *,
    step: int,
    digest: str,
    bookkeeping: StateDict,
    segments: Iterable[Segment],
    replay_saved: bool,
) -> dict[str, Any]:
    """Build the manifest of the files in a directory; segments, whose SHA-256 is known, are not read."""
    known = {segment.file: {"sha256": segment.sha256, "bytes": segment.bytes} for segment in segments}
    names = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    contents = {
        "schema_version": SCHEMA_VERSION,
        "step": step,
        "state_digest": digest,
        "timestamp": now(),
        "replay_saved": replay_saved,
        "files": {name: known.get(name) or _file_entry(directory / name) for name in names},
        "bookkeeping": bookkeeping,
    }
    return sealed(contents)


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Add the digest of a manifest to it, so that damage to it is detected too."""
    return seal.sealed(manifest, _SEAL)


def replace_bookkeeping(directory: Path, bookkeeping: StateDict) -> str:
    """Replace the bookkeeping of a checkpoint atomically, and return its state digest."""
    manifest = read_manifest(directory)
    write_json_atomically(directory / MANIFEST, sealed({**manifest, "bookkeeping": bookkeeping}))
    return str(manifest["state_digest"])


def now() -> str:
    """Return the current time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _file_entry(path: Path) -> dict[str, Any]:
    return {"sha256": sha256_of_file(path), "bytes": path.stat().st_size}


def _missing_replay(directory: Path, names: Iterable[str]) -> list[str]:
    """Return the files of the replay that are missing, as after removing them to save space."""
    replay = [name for name in names if name.startswith(f"{FOLDER}/")]
    return [name for name in replay if not is_file(directory / name)]


def _verify_file(path: Path, expected: dict[str, Any] | None) -> None:
    if expected is None:
        raise DamagedError(f"{path}: is not listed in {MANIFEST}")
    with reading_of_run(path), open_regular(path) as file:
        is_as_recorded = os.fstat(file.fileno()).st_size == expected["bytes"]
        if not is_as_recorded or sha256_of_file(path) != expected["sha256"]:
            raise DamagedError(f"{path}: differs from {MANIFEST}; the file is damaged")
