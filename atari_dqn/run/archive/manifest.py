"""The manifest of an archive: the agent that it holds, and the length and SHA-256 of every part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from atari_dqn import __version__
from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import json_document
from atari_dqn.files.documents import Count, parse_json
from atari_dqn.files.seal import sealed
from atari_dqn.run.provenance import MOST_THREADS
from atari_dqn.spec.protocol import CheckpointChoice

MANIFEST = "archive.json"
SCHEMA_VERSION = 1
_SEAL = "manifest_sha256"
_NAME = r"^(videos/)?[A-Za-z0-9_]{1,80}\.[a-z0-9]{1,12}$"
"""Names of parts: no path leads out of the folder that an archive is unpacked into."""
_MOST_PARTS = 100


class Part(Struct, frozen=True):
    """A file of an archive."""

    name: Annotated[str, Meta(pattern=_NAME)]
    bytes: Count
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class AgentRecord(Struct, frozen=True, kw_only=True):
    """What an archive records of its agent, besides the files of its run."""

    game: str
    step: Count
    env_frames: Count
    checkpoint: CheckpointChoice
    """The weights, as protocols name them."""
    torch_threads: Annotated[int, Meta(ge=1, le=MOST_THREADS)]
    """Number of torch's threads, which rounding depends on."""


class Manifest(Struct, frozen=True, kw_only=True):
    """The contents of archive.json without its digest."""

    schema_version: int
    written_by: str
    """The version of this package that wrote the archive."""
    agent: AgentRecord
    parts: Annotated[list[Part], Meta(max_length=_MOST_PARTS)]


def manifest_data(agent: AgentRecord, parts: Mapping[str, bytes]) -> bytes:
    """Return archive.json for an agent and the parts of its archive."""
    listed = [Part(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in parts.items()]
    manifest = Manifest(schema_version=SCHEMA_VERSION, written_by=__version__, agent=agent, parts=listed)
    return json_document(sealed(msgspec.to_builtins(manifest), _SEAL))


def read_manifest(data: bytes) -> Manifest:
    """Read archive.json; raise `ValueError` if it is not what `manifest_data` returns."""
    document = parse_json(data)
    if not isinstance(document, dict) or sealed(document, _SEAL) != document:
        raise ValueError("it is not what was written")
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema version {version}, this program reads {SCHEMA_VERSION}")
    manifest = msgspec.convert(document, Manifest)
    names = [part.name for part in manifest.parts]
    if len({MANIFEST, *names}) != len(names) + 1:
        raise ValueError("it lists a part twice")
    return manifest


def check_part(path: object, part: Part, data: bytes) -> None:
    """Raise `DamagedError` with the name of a part that is not what the manifest records."""
    if len(data) != part.bytes:
        raise DamagedError(f"{path}: {part.name}: has {len(data):,} bytes of {part.bytes:,} recorded")
    found = hashlib.sha256(data).hexdigest()
    if found != part.sha256:
        raise DamagedError(f"{path}: {part.name}: its SHA-256 is {found}, recorded is {part.sha256}")
