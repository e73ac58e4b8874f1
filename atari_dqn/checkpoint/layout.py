"""The layout of a state: the keys, types and sizes that a state of the same specification has on disk.

It is taken from a new training, before anything is read: what a file says of its own size is not believed.
A value may differ from its example; its type, and an array's dtype and shape, may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from atari_dqn.checkpoint.described_rows import RowsLayout
from atari_dqn.checkpoint.segments import columns_of
from atari_dqn.checkpoint.tree import is_array, leaves, map_leaves
from atari_dqn.errors import DamagedError
from atari_dqn.replay.rows import RingRows, piece_rows
from atari_dqn.types import StateDict

Layout = Any
"""A tree of tables and lists whose leaves are `ArrayLayout`, `RowsLayout`, or a plain value as an example."""

_MOST_INT = 2**128
"""The state of a random stream is the largest integer."""
_MOST_CHARACTERS = 256
_LISTS = {"reporter.recent": [0.0, 0]}
"""Lists that are empty in a new training, and an example of what they come to hold."""
_MOST_LISTS_BYTES, _MOST_LEAF_BYTES, _MOST_SEGMENT_BYTES = 2**20, 512, 1024


@dataclass(frozen=True)
class ArrayLayout:
    """Dtype and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def is_serialised(self) -> bool:
        """Whether it is a row of bytes of another library, whose length may change."""
        return self.dtype == np.uint8 and len(self.shape) == 1

    @property
    def most_bytes(self) -> int:
        """The most that an array of this layout takes."""
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
    """Return the layout of a new training's state, without its networks and optimizer."""

    def leaf_layout(_: str, leaf: Any) -> Any:
        if isinstance(leaf, RingRows):
            return RowsLayout(columns_of(leaf.read(leaf.first, leaf.first)), leaf.capacity)
        if is_array(leaf):
            return ArrayLayout(np.dtype(str(leaf.dtype).removeprefix("torch.")), tuple(leaf.shape))
        return leaf

    return map_leaves({key: part for key, part in state.items() if key != "learner"}, leaf_layout)


def without_rows(layout: Layout) -> Layout:
    """Return the layout of the same state saved without the replay's rows."""
    return {**layout, "replay": {"newest_frame": layout["replay"]["ring"]["newest_frame"]}}


def most_json_bytes(layout: Layout) -> int:
    """Return a size that the JSON of a state of this layout is below, its rows' segments included."""
    parts = [leaf for _, leaf in leaves(layout)]
    pieces = sum(
        leaf.most_rows // piece_rows(leaf.lanes) + 2 for leaf in parts if isinstance(leaf, RowsLayout)
    )
    return _MOST_LISTS_BYTES + _MOST_LEAF_BYTES * len(parts) + _MOST_SEGMENT_BYTES * pieces


def joined(key: str, name: str) -> str:
    """Return the dotted key of a table's entry."""
    return f"{key}.{name}" if key else name


def check_plain(path: Path, key: str, value: Any, example: Any) -> None:
    """Raise a `DamagedError` where a value is not of its example's type, or is no value that a state has."""
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
    """Return whether a value is of its example's type, and within what a state can hold."""
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
            return f"an integer from {min(0, example)} on, below 2¹²⁸"
        case float():
            return "a number"
        case str():
            return f"a word of at most {_MOST_CHARACTERS} characters"
        case _:
            return f"{example}"


def shown(value: Any) -> str:
    """Return a value as an error shows it: short, and on one line."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) >= _MOST_INT:
        return "an integer beyond 128 bits"
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
