"""What an optimizer does in one pass over all weights, by the project's own kernels (docs/decisions/0034)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import increment_version

from atari_dqn.fast.cpu.factored import FactoredGradient, Rule
from atari_dqn.fast.cpu.library import integers, library, pointers

Row = tuple[Tensor, ...]
"""A weight, its gradient and its two averages."""


def move(rule: Rule, rows: Sequence[Row], *numbers: float) -> bool:
    """Move weights and averages by a kernel's rule; return False, and move nothing, where it cannot.

    Without rows there is nothing to move.

    Each row has to be fp32 in one piece of a CPU's memory, all of it in the same order.
    """
    kernels = library("portable")
    if not rows:
        return True
    if kernels is None or not all(map(_is_plain, rows)):
        return False
    columns: list[tuple[Tensor, ...]] = list(zip(*rows, strict=True))
    weights, _, means, mean_squares = columns
    counts = integers([weight.numel() for weight in weights])
    getattr(kernels, rule)(*map(pointers, columns), counts, len(rows), *numbers)
    increment_version([*weights, *means, *mean_squares])
    return True


def lay_alike(weight: Tensor, state: dict[str, Tensor]) -> None:
    """Copy a weight's gradient and averages to its own strides, which PyTorch's fused Adam relies on."""
    gradient = weight.grad
    if gradient is not None and gradient.stride() != weight.stride():
        weight.grad = torch.empty_like(weight).copy_(gradient)
    for name, value in state.items():
        if value.shape == weight.shape and value.stride() != weight.stride():
            state[name] = torch.empty_like(weight).copy_(value)


def gradient_norm(gradients: list[Tensor], factored: Sequence[FactoredGradient] = ()) -> Float[Tensor, ""]:
    """Return the root of the sum of all squares, by a kernel where that can read them."""
    kernels = library("portable")
    is_read = kernels is not None and all(map(is_readable, gradients))
    if not is_read and not factored:  # perhaps on a GPU, which is not waited for
        return nn.utils.get_total_norm(gradients, foreach=True)
    if kernels is not None and is_read:
        counts = integers([gradient.numel() for gradient in gradients])
        norm = kernels.norm(pointers(gradients), counts, len(gradients))
    else:
        norm = nn.utils.get_total_norm(gradients, foreach=True).item()
    return torch.tensor(math.hypot(norm, *(math.sqrt(gradient.squares()) for gradient in factored)))


def is_readable(tensor: Tensor) -> bool:
    """Return whether a tensor is fp32 and fills one piece of a CPU's memory, channels last or first."""
    in_one_piece = tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last)
    return in_one_piece and _is_fp32_of_cpu(tensor)


def _is_plain(row: Row) -> bool:
    strides = row[0].stride()
    return is_readable(row[0]) and all(
        tensor.stride() == strides and _is_fp32_of_cpu(tensor) for tensor in row[1:]
    )


def _is_fp32_of_cpu(tensor: Tensor) -> bool:
    return tensor.dtype is torch.float32 and tensor.is_cpu
