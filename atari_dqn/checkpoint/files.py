"""One checkpoint's files: weights for `torch.load`, arrays as `.npy`, everything else as JSON.

`agent.pt` holds both networks and the optimizer: all that an evaluation or another program needs.
`arrays/<dotted.path>.npy` are the other arrays of the state, `replay/` its rows (`segments.py`), `state.json`
its other values; where an array or rows were, it tells of their files.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from atari_dqn.checkpoint.segments import from_plain
from atari_dqn.checkpoint.tree import as_array, is_array, map_leaves
from atari_dqn.errors import DamagedError
from atari_dqn.replay.rows import Rows
from atari_dqn.types import StateDict

AGENT = "agent.pt"
STATE = "state.json"
ARRAYS = "arrays"
_ARRAY_KEY = "$array"
_ROWS_KEY = "$rows"


def write_state(directory: Path, agent: StateDict, rest: StateDict, rows: dict[str, Any]) -> None:
    """Write a state's files into an existing directory; `rows` stands for those of the replay in state.json.

    `OSError` if the disk refuses.
    """

    def put(path: str, leaf: Any) -> Any:
        if is_array(leaf):
            return _put_array(directory, path, leaf)
        return {_ROWS_KEY: rows} if isinstance(leaf, Rows) else leaf

    (directory / ARRAYS).mkdir()
    write_agent(directory, agent)
    (directory / STATE).write_text(json.dumps(map_leaves(rest, put), allow_nan=True))


def write_agent(directory: Path, agent: StateDict) -> None:
    """Write networks and optimizer into an existing directory. `OSError` if the disk refuses."""
    (directory / AGENT).write_bytes(_as_bytes(agent))


def read_agent(directory: Path) -> StateDict:
    """Return networks, optimizer and random stream, in RAM wherever they were. Runs no code of the file.

    `DamagedError` if it is not what `write_state` wrote.
    """
    path = directory / AGENT
    try:
        state: StateDict = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a file that was tampered with can make the reader raise anything
        cause = next(iter(str(error).splitlines()), type(error).__name__)
        raise DamagedError(f"{path}: cannot be read as weights: {cause}") from error
    return state


def read_rest(directory: Path) -> StateDict:
    """Return everything but networks and optimizer. Arrays are read as plain arrays, never unpickled."""
    path = directory / STATE
    try:
        plain = json.loads(path.read_text())
        state: StateDict = _take_arrays(directory, plain)
    except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise DamagedError(f"{path}: cannot be read: {error}") from error
    return state


def _as_bytes(agent: StateDict) -> memoryview:
    """Return what `torch.save` writes; its own error for a full disk names no cause."""
    buffer = io.BytesIO()
    torch.save(agent, buffer)
    return buffer.getbuffer()


def _put_array(directory: Path, path: str, leaf: Any) -> dict[str, str]:
    name = f"{ARRAYS}/{path}.npy"
    _write_array(directory / name, as_array(leaf))
    return {_ARRAY_KEY: name}


def _write_array(path: Path, array: np.ndarray) -> None:
    """Write an `.npy` file; `np.save` would hide the cause of a write that fails, such as a full disk."""
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.reshape(-1).view(np.uint8).data)


def _take_arrays(directory: Path, tree: Any) -> Any:
    if isinstance(tree, dict):
        if tree.keys() == {_ARRAY_KEY}:
            return np.load(directory / tree[_ARRAY_KEY], allow_pickle=False)
        if tree.keys() == {_ROWS_KEY}:
            return from_plain(directory, tree[_ROWS_KEY])
        return {key: _take_arrays(directory, value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_take_arrays(directory, value) for value in tree]
    return tree
