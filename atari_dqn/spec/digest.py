"""What identifies a spec: a digest of every value that can change what a run learns, measures or writes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

from atari_dqn.spec.history import first_name
from atari_dqn.spec.keys import Scalar, flatten
from atari_dqn.spec.schema import Spec

FREE_SECTIONS = frozenset({"gates", "system"})
"""They cannot change what is learned. A gate that halts ends a run; one that ended by itself met none."""
FREE_KEYS = frozenset({"checkpoint.period_frames", "checkpoint.period_seconds"})
"""How often a run is saved cannot change it: a checkpoint is a copy."""


def is_free(key: str) -> bool:
    """Return whether a key cannot change results; of keys of other versions the section decides."""
    return key in FREE_KEYS or key.partition(".")[0] in FREE_SECTIONS


def spec_digest(spec: Spec) -> str:
    """Return the SHA-256, in hex, of a spec's canonical JSON without keys that cannot change results.

    A key that does not apply is left out, so that adding a part to the schema moves no digest.
    """
    values = {first_name(key): value for key, value in flatten(spec).items() if not is_free(key)}
    return hashlib.sha256(canonical_json(values).encode()).hexdigest()


def canonical_json(values: Mapping[str, Scalar]) -> str:
    """Return the one JSON text of these values: keys sorted, no blanks, infinities as strings."""
    plain = {key: _finite(value) for key, value in values.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _finite(value: Scalar) -> Scalar:
    return str(value) if isinstance(value, float) and math.isinf(value) else value
