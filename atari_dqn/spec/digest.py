"""Compute the digest of a spec, over every value that can change what a run learns, measures or writes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

from atari_dqn.spec.history import is_new_and_unused, original_name
from atari_dqn.spec.keys import Scalar, flatten
from atari_dqn.spec.schema import Spec

_SECTIONS_WITHOUT_EFFECT = frozenset({"gates", "system"})
"""Sections that cannot change the results of a complete run: a gate that halts a run leaves it incomplete."""
_KEYS_WITHOUT_EFFECT = frozenset({"checkpoint.period_frames", "checkpoint.period_seconds"})
"""Keys of other sections that cannot change results: saving a checkpoint does not change the run."""


def cannot_change_results(key: str) -> bool:
    """Return whether a key cannot change results; for keys of other versions the section decides."""
    return key in _KEYS_WITHOUT_EFFECT or key.partition(".")[0] in _SECTIONS_WITHOUT_EFFECT


def spec_digest(spec: Spec) -> str:
    """Compute the SHA-256, in hexadecimal, of a spec's canonical JSON.

    Keys that cannot change results are left out. So are keys that do not apply: the digests of existing specs
    do not change when keys of a new part are added to the schema. Added keys that apply to existing
    specs are left out at the value of earlier versions (`history.is_new_and_unused`).
    """
    return values_digest(flatten(spec))


def values_digest(values: Mapping[str, Scalar]) -> str:
    """Compute the digest of a spec, as `spec_digest` does, from its values by dotted key."""
    effective = {
        original_name(key): value
        for key, value in values.items()
        if not cannot_change_results(key) and not is_new_and_unused(key, values)
    }
    return hashlib.sha256(canonical_json(effective).encode()).hexdigest()


def canonical_json(values: Mapping[str, Scalar]) -> str:
    """Serialize values to canonical JSON: keys sorted, no whitespace, infinities as strings."""
    plain = {key: _finite(value) for key, value in values.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _finite(value: Scalar) -> Scalar:
    return str(value) if isinstance(value, float) and math.isinf(value) else value
