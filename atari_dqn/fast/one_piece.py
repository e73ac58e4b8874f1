"""Tensors that lie one after another in one piece of memory, so that one operation changes all of them.

PyTorch's operations on lists of tensors give each block of a GPU 65,536 numbers. Those of a network with two
million weights occupy a fifth of a large GPU, and one operation on a piece occupies all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

ALIGNMENT = 32
"""Each tensor begins at a multiple of so many numbers, as fast kernels want it. Between them are zeros."""


@torch.no_grad()
def lay_in_one_piece(tensors: Sequence[Tensor]) -> Float[Tensor, "N"]:
    """Move tensors of one dtype into one new piece of memory, in order; each keeps its strides.

    Return all N numbers of the piece. The tensors must have no gaps in memory.
    """
    zeros = tensors[0].new_zeros(ALIGNMENT)
    parts = [part for tensor in tensors for part in (_in_memory_order(tensor), zeros[: _gap(tensor)])]
    piece = torch.cat(parts)
    for tensor, place in zip(tensors, _places(tensors), strict=False):
        tensor.data = piece.as_strided(tensor.shape, tensor.stride(), place)
    return piece


@torch.no_grad()
def piece_of(tensors: Sequence[Tensor]) -> Float[Tensor, "N"] | None:
    """View all numbers of the piece that `lay_in_one_piece` made of these tensors; None if they lie apart."""
    first = tensors[0]
    *places, length = _places(tensors)
    storage, begin, size = first.untyped_storage(), first.data_ptr(), first.element_size()
    addresses = [(storage.data_ptr(), begin + place * size) for place in places]
    found = [(tensor.untyped_storage().data_ptr(), tensor.data_ptr()) for tensor in tensors]
    if found != addresses or storage.nbytes() < (first.storage_offset() + length) * size:
        return None
    return first.as_strided((length,), (1,))


def as_one_piece(tensors: Sequence[Tensor]) -> Float[Tensor, "N"]:
    """View all numbers of a piece of tensors, which are moved into one if they lie apart."""
    piece = piece_of(tensors)
    return lay_in_one_piece(tensors) if piece is None else piece


def _places(tensors: Sequence[Tensor]) -> list[int]:
    """Compute where each tensor begins in its piece, and the length of the piece."""
    return list(accumulate((tensor.numel() + _gap(tensor) for tensor in tensors), initial=0))


def _gap(tensor: Tensor) -> int:
    """Compute the number of zeros behind a tensor."""
    return -tensor.numel() % ALIGNMENT


def _in_memory_order(tensor: Tensor) -> Float[Tensor, "N"]:
    assert tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)
    return tensor.as_strided((tensor.numel(),), (1,))
