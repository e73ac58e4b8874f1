"""States as bytes, for actors in other processes: JSON, and arrays in NumPy's format. Nothing is pickled."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from atari_dqn.run.checkpoint.state_tree import as_array, is_array, map_leaves
from atari_dqn.types import StateDict

_PLAIN, _REFERENCE = "plain", "$array"


def encode_state(state: StateDict) -> bytes:
    """Return a state as bytes."""
    arrays: dict[str, Any] = {}

    def put(_: str, leaf: Any) -> Any:
        if not is_array(leaf):
            return leaf
        name = f"array {len(arrays)}"
        arrays[name] = as_array(leaf)
        return {_REFERENCE: name}

    plain = json.dumps(map_leaves(state, put))
    arrays[_PLAIN] = np.frombuffer(plain.encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def decode_state(data: bytes) -> StateDict:
    """Return the state that `encode_state` made bytes of."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        state: StateDict = _resolved(json.loads(arrays[_PLAIN].tobytes()), arrays)
    return state


def _resolved(plain: Any, arrays: Any) -> Any:
    if isinstance(plain, dict):
        if plain.keys() == {_REFERENCE}:
            return arrays[plain[_REFERENCE]]
        return {key: _resolved(value, arrays) for key, value in plain.items()}
    if isinstance(plain, list):
        return [_resolved(value, arrays) for value in plain]
    return plain
