"""Checkpoints in which one value was changed and every seal made again: only a check of the value can tell.

A place is a path into a JSON document; a poison is what takes its value's place.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atari_dqn.files.atomic import write_json_atomically
from atari_dqn.run.checkpoint.manifest import sealed
from atari_dqn.run.checkpoint.names import MANIFEST

Place = tuple[str | int, ...]


def _nested() -> Any:
    value: Any = 0
    for _ in range(400):
        value = [value]
    return value


POISONS: dict[str, Any] = {
    "null": None,
    "true": True,
    "word": "word",
    "number in a word": "12",
    "zero": 0,
    "negative": -3,
    "beyond 64 bits": 2**70,
    "400 digits": 10**400,
    "fraction": 1.5,
    "nan": math.nan,
    "infinity": math.inf,
    "empty list": [],
    "list": [1, 2, 3],
    "empty table": {},
    "table": {"unknown": 1},
    "nested": _nested(),
}
DELETED = object()


def places(tree: Any, place: Place = ()) -> Iterator[Place]:
    """Yield every place of a document, those of tables and lists too."""
    if place:
        yield place
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*place, key))


def put(tree: Any, place: Place, value: Any) -> None:
    for key in place[:-1]:
        tree = tree[key]
    if value is DELETED:
        del tree[place[-1]]
    else:
        tree[place[-1]] = value


def reseal(checkpoint: Path) -> None:
    """Make a manifest fit its checkpoint's files again."""
    manifest = json.loads((checkpoint / MANIFEST).read_text())
    for name, entry in manifest["files"].items():
        data = (checkpoint / name).read_bytes()
        entry.update(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    write_json_atomically(checkpoint / MANIFEST, sealed(manifest))


def tamper_state(checkpoint: Path, place: Place, value: Any) -> None:
    state = json.loads((checkpoint / "state.json").read_text())
    put(state, place, value)
    (checkpoint / "state.json").write_text(json.dumps(state))
    reseal(checkpoint)


def tamper_manifest(checkpoint: Path, place: Place, value: Any) -> None:
    """Change a value of the manifest itself, which `plain` makes fit for JSON as it does when it is saved."""
    manifest = json.loads((checkpoint / MANIFEST).read_text())
    put(manifest, place, value)
    write_json_atomically(checkpoint / MANIFEST, sealed(manifest))


def places_once(tree: Any) -> list[Place]:
    """Return every place, of lists of like values that of the first alone."""
    return [place for place in places(tree) if not any(isinstance(key, int) and key > 0 for key in place)]
