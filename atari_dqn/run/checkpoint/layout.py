"""The layout of a state: the keys, types and sizes that a state of the same spec must have on disk.

The layout is derived from a newly built training before a file is read, so that no memory is allocated by a
size that the file itself gives. A value may differ from its example in the layout; its type, and the dtype
and shape of an array, may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from atari_dqn.errors import DamagedError
from atari_dqn.replay.rows import RingRows, piece_rows
from atari_dqn.run.checkpoint.row_layout import RowsLayout
from atari_dqn.run.checkpoint.segments import columns_of
from atari_dqn.run.checkpoint.state_tree import is_array, leaves, map_leaves
from atari_dqn.types import StateDict

Layout = Any
"""A tree of dicts and lists. A leaf is an `ArrayLayout`, a `RowsLayout`, or a plain value as an example."""

_MOST_INT = 2**128
"""Above the largest integers of a state, which belong to random streams."""
_MOST_CHARACTERS = 256
_LISTS = {"reporter.recent": [0.0, 0]}
"""Lists that are empty in a new training, each with an example of its later items."""
_MOST_LISTS_BYTES, _MOST_LEAF_BYTES, _MOST_SEGMENT_BYTES = 2**25, 512, 1024
"""The first is ten times what the episodes of the longest rolling mean take (`logging.rolling_episodes`)."""


@dataclass(frozen=True)
class ArrayLayout:
    """Dtype and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def is_serialised(self) -> bool:
        """Whether the array is a state serialised by another library, whose length may change."""
        return self.dtype == np.uint8 and len(self.shape) == 1

    @property
    def most_bytes(self) -> int:
        """Largest size of an array of this layout."""
        size = self.dtype.itemsize * math.prod(self.shape)
        return max(2 * size, 2**16) if self.is_serialised else size

    def allows(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
        """Return whether an array has this layout."""
        if self.is_serialised:
            return dtype == self.dtype and len(shape) == 1 and shape[0] <= self.most_bytes
        return (dtype, shape) == (self.dtype, self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


def layout_of_rest(state: StateDict) -> Layout:
    """Return the layout of a new training's state without the learner's part, which `agent.pt` holds."""

    def leaf_layout(_: str, leaf: Any) -> Any:
        if isinstance(leaf, RingRows):
            columns = columns_of(leaf.read(leaf.first, leaf.first))
            return RowsLayout(columns, leaf.capacity, len(leaf.spans))
        if is_array(leaf):
            return ArrayLayout(np.dtype(str(leaf.dtype).removeprefix("torch.")), tuple(leaf.shape))
        return leaf

    return map_leaves({key: part for key, part in state.items() if key != "learner"}, leaf_layout)


def without_rows(state: StateDict) -> StateDict:
    """Reduce a state, or its layout, to what is saved without the rows of the replay.

    Of the replay these are the newest frames, from which it begins again, and the random stream of its
    sampler, which must not repeat the numbers that it has drawn before.
    """
    ring, sampler = state["replay"]["ring"], state["replay"]["sampler"]
    kept = {"newest_frame": ring["newest_frame"], "generator": sampler["generator"]}
    return {**state, "replay": kept}


def most_json_bytes(layout: Layout) -> int:
    """Return an upper bound on the size of a state's JSON, the list of row segments included."""
    found = [leaf for _, leaf in leaves(layout)]
    pieces = sum(
        leaf.most_rows // piece_rows(leaf.envs) + 2 * leaf.spans
        for leaf in found
        if isinstance(leaf, RowsLayout)
    )
    return _MOST_LISTS_BYTES + _MOST_LEAF_BYTES * len(found) + _MOST_SEGMENT_BYTES * pieces


def joined(key: str, name: str) -> str:
    """Return the dotted key of an entry `name` of the table at `key`."""
    return f"{key}.{name}" if key else name


def check_plain(path: Path, key: str, value: Any, example: Any) -> None:
    """Raise a `DamagedError` if a value does not have the type of its example or is out of range."""
    if key in _LISTS and example == []:
        _check_list(path, key, value, _LISTS[key])
    elif not is_like(value, example):
        raise DamagedError(f"{path}: {key}: found {shown(value)}, expected {_words(example)}")


def _check_list(path: Path, key: str, values: Any, example: list[Any]) -> None:
    if not isinstance(values, list):
        raise DamagedError(f"{path}: {key}: found {shown(values)}, expected a list")
    for number, value in enumerate(values):
        fits = isinstance(value, list) and len(value) == len(example)
        if not fits or not all(map(is_like, value, example)):
            raise DamagedError(
                f"{path}: {key}.{number}: found {shown(value)}, expected values like {example}"
            )


def is_like(value: Any, example: Any) -> bool:
    """Return whether a value has the type of its example and is within the range of a state's values."""
    match example:
        case bool() | None:
            return type(value) is type(example)
        case int():
            return type(value) is int and min(0, example) <= value < _MOST_INT
        case float():
            return type(value) is float or (type(value) is int and abs(value) < _MOST_INT)
        case str():
            return isinstance(value, str) and len(value) <= _MOST_CHARACTERS
        case _:
            return type(value) is type(example) and value == example


def _words(example: Any) -> str:
    match example:
        case bool():
            return "true or false"
        case int():
            return f"an integer of at least {min(0, example)} and below 2¹²⁸"
        case float():
            return "a number"
        case str():
            return f"a string of at most {_MOST_CHARACTERS} characters"
        case _:
            return f"{example}"


def shown(value: Any) -> str:
    """Format a value for an error message, short and on one line."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) >= _MOST_INT:
        return "an integer beyond 128 bits"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
