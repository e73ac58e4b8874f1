"""Add to a JSON document a digest of itself, so that damage is detected."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from atari_dqn.files.atomic import plain


def sealed(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a document as plain JSON data, with the SHA-256 of all other keys under `key`.

    A document that was read is undamaged if it equals `sealed(document, key)`.
    """
    contents = {name: value for name, value in plain(document).items() if name != key}
    return {**contents, key: hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()}
