"""A digest that a JSON document holds of itself, so that damage to it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atari_dqn.files.atomic import plain
from atari_dqn.run.checkpoint.tree import leaf_digest


def sealed(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a document as JSON holds it, with the digest of everything else under `key`."""
    contents = {name: value for name, value in plain(document).items() if name != key}
    return {**contents, key: leaf_digest(contents)}
