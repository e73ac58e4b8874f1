"""Tensors that are views of one flat buffer, so that one operation changes all of them.

PyTorch's operations on lists of tensors assign 65,536 elements to each CUDA block. Two million weights then
fill about 30 blocks, a quarter of a large GPU's multiprocessors; an operation on a flat buffer uses all of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

ALIGNMENT = 32
"""Each tensor begins at a multiple of this number of elements, because vectorised CUDA kernels need aligned
addresses. The padding is zeros, so that the norm of the buffer is that of the tensors."""


@torch.no_grad()
def move_to_buffer(tensors: Sequence[Tensor]) -> Float[Tensor, "N"]:
    """Replace the memory of tensors of one dtype by a new buffer, in order; each keeps its strides.

    Return the buffer: N elements, padding included. The tensors must have no gaps in memory. Other views of
    their former memory, such as those of an earlier `state_dict`, no longer change with them.
    """
    zeros = tensors[0].new_zeros(ALIGNMENT)
    parts = [part for tensor in tensors for part in (_in_memory_order(tensor), zeros[: _padding(tensor)])]
    buffer = torch.cat(parts)
    *offsets, _ = _offsets(tensors)
    for tensor, offset in zip(tensors, offsets, strict=True):
        tensor.data = buffer.as_strided(tensor.shape, tensor.stride(), offset)
    return buffer


@torch.no_grad()
def find_buffer(tensors: Sequence[Tensor]) -> Float[Tensor, "N"] | None:
    """Return the buffer to which `move_to_buffer` has moved these tensors; None if there is none."""
    *offsets, length = _offsets(tensors)
    storage, size = tensors[0].untyped_storage(), tensors[0].element_size()
    expected = [(storage.data_ptr(), storage.data_ptr() + offset * size) for offset in offsets]
    found = [(tensor.untyped_storage().data_ptr(), tensor.data_ptr()) for tensor in tensors]
    if found != expected or storage.nbytes() != length * size:
        return None
    return tensors[0].as_strided((length,), (1,))


def ensure_buffer(tensors: Sequence[Tensor]) -> Float[Tensor, "N"]:
    """Return the buffer of these tensors; move them to a new one if they have none."""
    buffer = find_buffer(tensors)
    return move_to_buffer(tensors) if buffer is None else buffer


def _offsets(tensors: Sequence[Tensor]) -> list[int]:
    """Compute the first element of each tensor in its buffer, and the length of the buffer."""
    return list(accumulate((tensor.numel() + _padding(tensor) for tensor in tensors), initial=0))


def _padding(tensor: Tensor) -> int:
    """Compute the number of zeros behind a tensor."""
    return -tensor.numel() % ALIGNMENT


def _in_memory_order(tensor: Tensor) -> Float[Tensor, "N"]:
    """View the elements in the order in which they are in memory."""
    assert tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last), "it has gaps"
    return tensor.as_strided((tensor.numel(),), (1,))
