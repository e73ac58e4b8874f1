"""What kernels are told: where tensors lie, what sizes they have and which format."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from atari_dqn.fast.cpu.library import library, pointers, unit_for
from atari_dqn.fast.cpu.shapes import shapes_of


def noisy_addresses(mean: Tensor, deviation: Tensor, noise_in: Tensor, noise_out: Tensor) -> tuple[int, ...]:
    """Return where a noisy layer's weights and its noise lie, which the kernels take in fp32 alone."""
    outputs, inputs = mean.shape
    return (
        _fp32_address(mean, outputs * inputs), _fp32_address(deviation, outputs * inputs),
        _fp32_address(noise_in, inputs), _fp32_address(noise_out, outputs),
    )  # fmt: skip


def _fp32_address(tensor: Tensor, count: int) -> int:
    assert (tensor.dtype, tensor.is_contiguous()) == (torch.float32, True)
    return address(tensor, count)


def sizes_of(x: Tensor, weight: Tensor) -> tuple[int, int, int]:
    """Return rows, inputs and outputs of a product."""
    rows, inputs = x.shape
    outputs, inputs_of_weight = weight.shape
    assert inputs == inputs_of_weight
    return rows, inputs, outputs


def address(tensor: Tensor, count: int) -> int:
    """Return where so many values lie."""
    assert tensor.numel() == count
    return tensor.data_ptr()


def row(values: Tensor) -> Tensor:
    """Return values as the kernels read a bias: fp32, one after the other."""
    return values.float().contiguous()


def channels_last(x: Tensor) -> Tensor:
    """Return images or weights with the channels of a pixel side by side."""
    return x.contiguous(memory_format=torch.channels_last)


def empty_images(size: Sequence[int], like: Tensor) -> Tensor:
    """Return room for images, channels-last, in the format of others."""
    return torch.empty(size, dtype=like.dtype, memory_format=torch.channels_last)


def kernels() -> ctypes.CDLL:
    """Return the library of products, where there is one."""
    found = library("products")
    assert found is not None, "ask takes_… first"
    return found


def unit_of(*tensors: Tensor) -> int:
    """Return the unit for tensors, which are in one format."""
    (dtype,) = {tensor.dtype for tensor in tensors}
    unit = unit_for(dtype)
    assert unit is not None, "ask takes_… first"
    return unit


class ChainArguments:
    """What the kernels are told of a chain of convolutions: its images, shapes and weights."""

    def __init__(self, pixels: Tensor, weights: list[Tensor], strides: list[int], zeros: list[int]) -> None:
        in_planes = pixels.is_contiguous()
        self._pixels = pixels if in_planes else channels_last(pixels)
        self.weights = [channels_last(weight) for weight in weights]
        shapes, self.sizes = shapes_of(
            pixels.shape, tuple(weight.shape for weight in weights), tuple(strides), tuple(zeros)
        )
        self.arguments = (
            self._pixels.data_ptr(), in_planes, shapes, len(weights), pointers(self.weights),
        )  # fmt: skip
