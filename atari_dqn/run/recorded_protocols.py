"""Read the evaluation protocols that a run recorded, by fingerprint.

`provenance.json` has those of its start. A resume in which they are others, for example with another version
of the emulator, records them in its notice, `resumed` of the event log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from atari_dqn.files.atomic import is_file
from atari_dqn.files.documents import checked, read_json, with_infinity
from atari_dqn.run.archive.archive import SCORES
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.logged_events import logged_events
from atari_dqn.spec.protocol import Protocol

KEY = "protocols"
"""The key of the protocols in provenance.json and in a notice `resumed`."""


class _ArchivedScore(Struct):
    """The keys of an archive's score that say under which protocol it was made."""

    protocol_digest: str
    protocol: dict[str, Any] | None = None


def recorded_protocols(run: RunDirectory, used: Collection[str]) -> dict[str, Protocol]:
    """Return the protocols of a run or an import by fingerprint.

    `used`: the fingerprints of its scores. Other files than provenance.json are read only if it lacks one of
    them. `DamagedError` names file and key of an invalid protocol.
    """
    found = checked_protocols(run.provenance, run.read_provenance().get(KEY, {}))
    if found.keys() >= set(used):
        return found
    return found | _of_resumes(run.events) | _of_scores(run.path / SCORES)


def checked_protocols(path: Path, records: Any) -> dict[str, Protocol]:
    """Convert protocols by fingerprint; `DamagedError` names file and key if they are invalid."""
    if isinstance(records, Mapping):
        records = {digest: with_infinite_values(record) for digest, record in records.items()}
    return checked(path, records, dict[str, Protocol], key=KEY)


def with_infinite_values(protocol: Any) -> Any:
    """Convert an infinity that was written as text, of no reward clipping; others stay what they are."""
    if not isinstance(protocol, Mapping):
        return protocol
    return {name: with_infinity(value) for name, value in protocol.items()}


def _of_resumes(events: Path) -> dict[str, Protocol]:
    records = [event.data.get(KEY) for event in logged_events(events) if event.kind == "resumed"]
    found = [checked_protocols(events, record) for record in records if record is not None]
    return {digest: protocol for protocols in found for digest, protocol in protocols.items()}


def _of_scores(scores: Path) -> dict[str, Protocol]:
    """Read the protocols of the scores that an archive holds; its event log is not in it."""
    if not is_file(scores):
        return {}
    found = checked(scores, read_json(scores), list[_ArchivedScore])
    records = {score.protocol_digest: score.protocol for score in found if score.protocol is not None}
    return checked_protocols(scores, records)
