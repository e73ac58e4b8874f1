"""Add to a JSON document a digest of itself, so that damage is detected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atari_dqn.files.atomic import plain
from atari_dqn.run.checkpoint.state_tree import leaf_digest


def sealed(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a document as plain JSON data, with the digest of all other keys under `key`."""
    contents = {name: value for name, value in plain(document).items() if name != key}
    return {**contents, key: leaf_digest(contents)}
