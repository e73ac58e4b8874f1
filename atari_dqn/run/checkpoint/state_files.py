"""Read and write the files of a checkpoint: weights for `torch.load`, arrays as `.npy`, the rest as JSON.

`agent.pt` holds both networks and the optimizer, which is all that evaluation needs.
`arrays/<dotted.path>.npy` are the other arrays of the state, `replay/` holds the replay rows (`segments.py`),
and `state.json` the other values, with references to these files.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from atari_dqn.errors import DamagedError
from atari_dqn.files.documents import MOST_BYTES, read_json
from atari_dqn.replay.rows import Rows
from atari_dqn.run.checkpoint.archive import read_archive
from atari_dqn.run.checkpoint.array_files import read_array, write_array
from atari_dqn.run.checkpoint.layout import (
    ArrayLayout,
    Layout,
    check_plain,
    joined,
    most_json_bytes,
    shown,
    without_rows,
)
from atari_dqn.run.checkpoint.learner_layout import check_learner
from atari_dqn.run.checkpoint.row_layout import RowsLayout, described_rows
from atari_dqn.run.checkpoint.state_tree import as_array, is_array, map_leaves
from atari_dqn.types import StateDict

AGENT = "agent.pt"
STATE = "state.json"
ARRAYS = "arrays"
_ARRAY_KEY = "$array"
_ROWS_KEY = "$rows"


def write_state(directory: Path, agent: StateDict, rest: StateDict, rows: dict[str, Any]) -> None:
    """Write the files of a state into an existing directory. `rows`: the description of the replay rows.

    Raise `OSError` if writing fails.
    """

    def put(path: str, leaf: Any) -> Any:
        if is_array(leaf):
            return _put_array(directory, path, leaf)
        return {_ROWS_KEY: rows} if isinstance(leaf, Rows) else leaf

    (directory / ARRAYS).mkdir()
    write_agent(directory, agent)
    (directory / STATE).write_text(json.dumps(map_leaves(rest, put), allow_nan=True))


def write_agent(directory: Path, agent: StateDict) -> None:
    """Write networks and optimizer into an existing directory; raise `OSError` if writing fails."""
    (directory / AGENT).write_bytes(_as_bytes(agent))


def read_agent(directory: Path, learner: StateDict | None = None) -> StateDict:
    """Read networks, optimizer and random stream into RAM without running code of the file.

    `learner`: the state of a new learner of the run's spec, or of its online network alone, whose names,
    shapes and types the file must have; None accepts any. Raise `DamagedError` if the file does not fit.
    """
    path = directory / AGENT
    state = read_archive(path, learner)
    if learner is not None:
        check_learner(path, state, learner)
    return state


def read_rest(directory: Path, layout: Layout | None = None) -> StateDict:
    """Read everything except networks and optimizer, without unpickling.

    Keys that the layout lacks are ignored, and nothing larger than in the layout is read; None accepts any
    layout. Raise `DamagedError` with the file and the key that does not fit.
    """
    path = directory / STATE
    plain = read_json(path, most_bytes=MOST_BYTES if layout is None else most_json_bytes(layout))
    if layout is None:
        state: StateDict = _resolve_any(path, "", plain)
    else:
        state = _resolve(path, "", plain, _saved_part(plain, layout))
    return state


def _as_bytes(agent: StateDict) -> memoryview:
    """Serialise with `torch.save` in memory, because its error for a full disk does not name the cause."""
    buffer = io.BytesIO()
    torch.save(agent, buffer)
    return buffer.getbuffer()


def _put_array(directory: Path, path: str, leaf: Any) -> dict[str, str]:
    name = _file_of_array(path)
    write_array(directory / name, as_array(leaf))
    return {_ARRAY_KEY: name}


def _saved_part(plain: Any, layout: Layout) -> Layout:
    """Return the part of the layout that a state has: all of it, or what is saved without rows."""
    replay = plain.get("replay") if isinstance(plain, dict) else None
    if not isinstance(replay, dict) or "ring" in replay:
        return layout
    reduced = without_rows(layout)
    if "generator" not in replay:  # earlier versions saved the frames alone
        del reduced["replay"]["generator"]
    return reduced


def _resolve(path: Path, key: str, found: Any, layout: Layout) -> Any:
    """Return the value at `key` of the file `path`, with references replaced by arrays and rows."""
    match layout:
        case ArrayLayout():
            return _read_array(path, key, _reference(path, key, found, _ARRAY_KEY), layout)
        case RowsLayout():
            return described_rows(path, key, _reference(path, key, found, _ROWS_KEY), layout)
        case dict() if layout:
            return {
                name: _resolve(path, *_entry(path, key, found, name), part) for name, part in layout.items()
            }
        case list() if layout:
            if not isinstance(found, list) or len(found) != len(layout):
                raise DamagedError(f"{path}: {key}: found {shown(found)}, expected a list of {len(layout)}")
            parts = enumerate(zip(found, layout, strict=True))
            return [_resolve(path, f"{key}.{number}", value, part) for number, (value, part) in parts]
    check_plain(path, key, found, layout)
    return found


def _resolve_any(path: Path, key: str, found: Any) -> Any:
    if isinstance(found, dict):
        if found.keys() == {_ARRAY_KEY}:
            return _read_array(path, key, found[_ARRAY_KEY], None)
        if found.keys() == {_ROWS_KEY}:
            return described_rows(path, key, found[_ROWS_KEY], None)
        return {name: _resolve_any(path, joined(key, name), value) for name, value in found.items()}
    if isinstance(found, list):
        return [_resolve_any(path, f"{key}.{number}", value) for number, value in enumerate(found)]
    return found


def _entry(path: Path, key: str, found: Any, name: str) -> tuple[str, Any]:
    """Return the dotted key and the value of an entry of a table."""
    if not isinstance(found, dict):
        raise DamagedError(f"{path}: {key or 'the document'}: found {shown(found)}, expected a table")
    if name not in found:
        raise DamagedError(f"{path}: {joined(key, name)}: missing")
    return joined(key, name), found[name]


def _reference(path: Path, key: str, found: Any, marker: str) -> Any:
    if not isinstance(found, dict) or found.keys() != {marker}:
        raise DamagedError(f"{path}: {key}: found {shown(found)}, expected {{{marker!r}: …}}")
    return found[marker]


def _read_array(path: Path, key: str, name: Any, layout: ArrayLayout | None) -> np.ndarray:
    if name != _file_of_array(key):
        raise DamagedError(f"{path}: {key}: found {shown(name)}, expected {_file_of_array(key)!r}")
    return read_array(path.parent / name, layout)


def _file_of_array(key: str) -> str:
    return f"{ARRAYS}/{key}.npy"
