"""Traverse a state as a tree: iterate over its leaves by dotted path, map them, compute digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from atari_dqn.replay.rows import Rows, Tables, pieces_of
from atari_dqn.types import StateDict

Leaf = Any
"""A number, a string, a boolean, None, a NumPy array, a tensor, or rows of a replay."""


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Yield every leaf with its dotted path, in order; an empty dict or list is a leaf."""
    if isinstance(tree, dict | list | tuple) and tree:
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, tree


def map_leaves(tree: Any, function: Callable[[str, Leaf], Any], path: str = "") -> Any:
    """Replace each leaf of a tree by `function(path, leaf)`; tuples become lists."""
    if isinstance(tree, dict) and tree:
        return {
            key: map_leaves(value, function, f"{path}.{key}" if path else str(key))
            for key, value in tree.items()
        }
    if isinstance(tree, list | tuple) and tree:
        return [map_leaves(value, function, f"{path}.{index}") for index, value in enumerate(tree)]
    return function(path, tree)


def is_array(leaf: Leaf) -> bool:
    """Return whether a leaf is a NumPy array or a tensor."""
    return isinstance(leaf, np.ndarray | Tensor)


def as_array(leaf: Leaf) -> np.ndarray:
    """Return a leaf as a C-contiguous NumPy array, without a copy if possible."""
    array = leaf.detach().cpu().numpy() if isinstance(leaf, Tensor) else leaf
    return np.ascontiguousarray(array).reshape(array.shape)


def detached(tree: Any) -> Any:
    """Copy a tree with its tensors on the CPU; only rows still refer to the memory of the original."""
    if isinstance(tree, dict):
        return {key: detached(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(detached(value) for value in tree)
    if isinstance(tree, Tensor):
        return tree.detach().to("cpu", copy=True)
    return tree.copy() if isinstance(tree, np.ndarray) else tree


def leaf_digest(leaf: Leaf) -> str:
    """Compute the SHA-256 of a leaf: dtype, shape and bytes of an array, or the JSON of a plain value."""
    if isinstance(leaf, Rows):
        return rows_digest((*piece, piece_digest(leaf.read(*piece))) for piece in pieces_of(leaf))
    digest = hashlib.sha256()
    if is_array(leaf):
        array = as_array(leaf)
        digest.update(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    else:
        digest.update(json.dumps(leaf, sort_keys=True).encode())
    return digest.hexdigest()


def piece_digest(tables: Tables) -> str:
    """Compute the SHA-256 of a piece of rows, from the lines `column digest` sorted by column."""
    return _digest_of_lines(f"{name} {leaf_digest(column)}" for name, column in tables.items())


def rows_digest(pieces: Iterable[tuple[int, int, str]]) -> str:
    """Compute the SHA-256 of rows, from the lines `first stop digest` of their pieces."""
    return _digest_of_lines(f"{first:020d} {stop} {digest}" for first, stop, digest in pieces)


def tree_digest(tree: StateDict, known: Mapping[str, str] | None = None) -> str:
    """Compute the SHA-256 of a tree, from the lines `path digest` of its leaves sorted by path.

    `known`: digests by path of leaves that are then not read.
    """
    known = known or {}
    return digest_of_digests({path: known.get(path) or leaf_digest(leaf) for path, leaf in leaves(tree)})


def digest_of_digests(digests: Mapping[str, str]) -> str:
    """Compute the digest of a tree from the digests of its leaves by dotted path."""
    return _digest_of_lines(f"{path} {digest}" for path, digest in digests.items())


def _digest_of_lines(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
