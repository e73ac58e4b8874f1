"""Read and write archives: one ZIP file, not compressed, or the folder that `dqn import` unpacks it into.

An archive is read whole and every part is checked before any of it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import exists, is_file, write_atomically, write_durably
from atari_dqn.files.documents import MOST_BYTES as MOST_DOCUMENT_BYTES
from atari_dqn.files.documents import read_run_file
from atari_dqn.files.failures import writing
from atari_dqn.files.whole_directory import whole_directory
from atari_dqn.run.archive.container import MOST_BYTES, container, directory, first_data, header
from atari_dqn.run.archive.manifest import (
    MANIFEST,
    AgentRecord,
    Manifest,
    check_part,
    manifest_data,
    read_manifest,
)

SUFFIX = ".dqn"
SPEC, PROVENANCE, WEIGHTS, SCORES = "spec.toml", "provenance.json", "weights.safetensors", "scores.json"
NEEDED = (SPEC, PROVENANCE, WEIGHTS, SCORES)
"""The parts that every archive has."""


@dataclass(frozen=True, kw_only=True)
class Archive:
    """An archive whose parts were checked against its manifest."""

    path: Path
    agent: AgentRecord
    parts: Mapping[str, bytes]
    """The contents of each file, by name."""


def is_archive(path: Path) -> bool:
    """Return whether a path is an archive file or an imported one; its contents are not checked."""
    return is_archive_file(path) or is_imported(path)


def is_archive_file(path: Path) -> bool:
    """Return whether a path is an archive file; its contents are not checked."""
    return path.suffix == SUFFIX and is_file(path)


def is_imported(path: Path) -> bool:
    """Return whether a folder is an archive that `dqn import` unpacked."""
    return is_file(path / MANIFEST)


def read_archive(path: Path) -> Archive:
    """Read an archive; raise `DamagedError` with the name of the first damaged part, and a remedy."""
    is_folder = path.is_dir()
    try:
        return _read_folder(path) if is_folder else _read_file(path)
    except DamagedError as error:
        remedy = "unpack the archive" if is_folder else "copy or download it"
        raise DamagedError(f"{error}; {remedy} again, or export it with this version of atari_dqn") from error


def write_archive(path: Path, agent: AgentRecord, parts: Mapping[str, bytes]) -> None:
    """Write an archive; `UserError` if it would be too large or cannot be written."""
    data = container({MANIFEST: manifest_data(agent, parts), **parts})
    if len(data) > MOST_BYTES:
        raise UserError(f"{path}: would have {len(data):,} bytes, expected at most {MOST_BYTES:,}")
    write_atomically(path, data)


def unpack_archive(archive: Archive, folder: Path) -> None:
    """Write the parts of an archive and its manifest into a new folder, which appears when it is whole."""
    files = {MANIFEST: manifest_data(archive.agent, archive.parts), **archive.parts}
    held = {PurePosixPath(name).parts[0] for name in files}
    with writing(folder), whole_directory(folder, holds=held) as partial:
        write_parts(files, partial)


def write_parts(files: Mapping[str, bytes], folder: Path) -> None:
    """Write parts into an existing folder; raise `OSError` if writing fails."""
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_durably(folder / name, data)


def _read_file(path: Path) -> Archive:
    """Read an archive file; its manifest comes first, and every other byte is checked against it."""
    data = read_run_file(path, most_bytes=MOST_BYTES)
    try:
        first = first_data(data, MANIFEST)
    except ValueError as error:
        raise DamagedError(f"{path}: {MANIFEST}: {error}; expected an archive by `dqn export`") from error
    if len(first) > MOST_DOCUMENT_BYTES:
        raise DamagedError(f"{path}: {MANIFEST}: is larger than {MOST_DOCUMENT_BYTES:,} bytes")
    manifest = _manifest(path, first)
    members, rest = {MANIFEST: first}, memoryview(data)[len(header(MANIFEST, first)) + len(first) :]
    for part in manifest.parts:
        start = len(header(part.name, b""))
        found = bytes(rest[start : start + part.bytes])
        check_part(path, part, found)
        if rest[:start] != header(part.name, found):
            raise DamagedError(f"{path}: {part.name}: its header is not that of its data")
        members[part.name], rest = found, rest[start + part.bytes :]
    if rest != directory(members):
        raise DamagedError(f"{path}: the list of parts at its end is not that of its parts")
    return _archive(path, manifest, members)


def _read_folder(path: Path) -> Archive:
    manifest = _manifest(path, read_run_file(path / MANIFEST))
    members = {}
    for part in manifest.parts:
        members[part.name] = read_run_file(path / part.name, most_bytes=MOST_BYTES)
        check_part(path, part, members[part.name])
    return _archive(path, manifest, members)


def _manifest(path: Path, data: bytes) -> Manifest:
    try:
        return read_manifest(data)
    except ValueError as error:  # msgspec's errors are ValueErrors too
        raise DamagedError(f"{path}: {MANIFEST}: {error}") from error


def _archive(path: Path, manifest: Manifest, members: Mapping[str, bytes]) -> Archive:
    parts = {name: data for name, data in members.items() if name != MANIFEST}
    missing = [name for name in NEEDED if name not in parts]
    if missing:
        raise DamagedError(f"{path}: {', '.join(missing)}: missing")
    return Archive(path=path, agent=manifest.agent, parts=parts)


def check_is_archive(path: Path) -> None:
    """Raise `UserError` for a path that does not exist or is no archive."""
    if not exists(path):
        raise UserError(f"{path}: not found; expected an archive by `dqn export`")
    if not is_archive(path):
        raise UserError(f"{path}: is not an archive; expected a file by `dqn export`, named …{SUFFIX}")


def refuse_missing_archive(path: Path) -> None:
    """Raise `UserError` for a path that ends in `.dqn` and does not exist; others may be runs."""
    if path.suffix == SUFFIX and not exists(path):
        raise UserError(f"{path}: not found; expected an archive by `dqn export`")


def refuse_imported(path: Path) -> None:
    """Raise `UserError` for an imported archive, whose training cannot be continued or repeated."""
    if is_imported(path):
        raise UserError(
            f"{path} is an imported archive: it has weights and scores, but no state of training to continue "
            "from; name a run directory"
        )
