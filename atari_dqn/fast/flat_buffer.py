"""Tensors that are views of one flat buffer, so that one operation changes all of them.

PyTorch's operations on lists of tensors give each block of a GPU 65,536 numbers. Those of a network with two
million weights occupy a fifth of a large GPU, and one operation on a buffer occupies all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

ALIGNMENT = 32
"""Each tensor begins at a multiple of so many numbers, because vectorised kernels need aligned addresses.
Between two tensors are zeros."""


@torch.no_grad()
def move_to_buffer(tensors: Sequence[Tensor]) -> Float[Tensor, "N"]:
    """Replace the memory of tensors of one dtype by a new buffer, in order; each keeps its strides.

    Return all N numbers of the buffer. The tensors must have no gaps in memory. Other views of their former
    memory, such as those of a `state_dict` made before, no longer change with them.
    """
    zeros = tensors[0].new_zeros(ALIGNMENT)
    parts = [part for tensor in tensors for part in (_in_memory_order(tensor), zeros[: _gap(tensor)])]
    buffer = torch.cat(parts)
    for tensor, place in zip(tensors, _places(tensors), strict=False):
        tensor.data = buffer.as_strided(tensor.shape, tensor.stride(), place)
    return buffer


@torch.no_grad()
def buffer_of(tensors: Sequence[Tensor]) -> Float[Tensor, "N"] | None:
    """View all numbers of the buffer that `move_to_buffer` made for these tensors; None if there is none."""
    *places, length = _places(tensors)
    storage, size = tensors[0].untyped_storage(), tensors[0].element_size()
    addresses = [(storage.data_ptr(), storage.data_ptr() + place * size) for place in places]
    found = [(tensor.untyped_storage().data_ptr(), tensor.data_ptr()) for tensor in tensors]
    if found != addresses or storage.nbytes() != length * size:
        return None
    return tensors[0].as_strided((length,), (1,))


def in_one_buffer(tensors: Sequence[Tensor]) -> Float[Tensor, "N"]:
    """View all numbers of a buffer of tensors, which are moved to a new one if they have none."""
    buffer = buffer_of(tensors)
    return move_to_buffer(tensors) if buffer is None else buffer


def _places(tensors: Sequence[Tensor]) -> list[int]:
    """Compute where each tensor begins in its buffer, and the length of the buffer."""
    return list(accumulate((tensor.numel() + _gap(tensor) for tensor in tensors), initial=0))


def _gap(tensor: Tensor) -> int:
    """Compute the number of zeros behind a tensor."""
    return -tensor.numel() % ALIGNMENT


def _in_memory_order(tensor: Tensor) -> Float[Tensor, "N"]:
    assert tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)
    return tensor.as_strided((tensor.numel(),), (1,))
