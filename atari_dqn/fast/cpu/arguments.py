"""Arguments of the kernels: addresses, sizes and formats of tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from atari_dqn.fast.cpu.library import library, pointers, unit_for
from atari_dqn.fast.cpu.shapes import shapes_of


def noisy_addresses(mean: Tensor, deviation: Tensor, noise_in: Tensor, noise_out: Tensor) -> tuple[int, ...]:
    """List the addresses of a noisy layer's weights and noise, which must be fp32."""
    outputs, inputs = mean.shape
    assert deviation.shape == mean.shape
    return (
        parameter_address(mean), parameter_address(deviation),
        _fp32_address(noise_in, inputs), _fp32_address(noise_out, outputs),
    )  # fmt: skip


def _fp32_address(tensor: Tensor, count: int) -> int:
    assert (tensor.dtype, tensor.is_contiguous()) == (torch.float32, True)
    return address(tensor, count)


def parameter_address(parameter: Tensor) -> int:
    """Return the address of a parameter's values; `ValueError` unless they are fp32 in a row on the CPU."""
    if parameter.dtype is torch.float32 and parameter.is_cpu and parameter.is_contiguous():
        return parameter.data_ptr()
    form = "contiguous" if parameter.is_contiguous() else "not contiguous"
    raise ValueError(
        f"expected parameters of float32 on the CPU, contiguous, found {parameter.dtype} on "
        f"{parameter.device}, {form}; the network was changed after it was accelerated: make it again"
    )


def sizes_of(x: Tensor, weight: Tensor) -> tuple[int, int, int]:
    """Return rows, inputs and outputs of a product; `ValueError` if the weight has other inputs."""
    rows, inputs = x.shape
    outputs, inputs_of_weight = weight.shape
    if inputs != inputs_of_weight:
        raise ValueError(f"expected {inputs_of_weight} inputs of each row, found size {tuple(x.shape)}")
    return rows, inputs, outputs


def address(tensor: Tensor, count: int) -> int:
    """Return the address of a tensor's values; it must have `count` of them."""
    assert tensor.numel() == count
    return tensor.data_ptr()


def row(values: Tensor) -> Tensor:
    """Convert a bias to contiguous fp32, as the kernels read it."""
    return values.float().contiguous()


def channels_last(x: Tensor) -> Tensor:
    """Convert images or weights to the channels-last memory format."""
    return x.contiguous(memory_format=torch.channels_last)


def empty_images(size: Sequence[int], like: Tensor) -> Tensor:
    """Allocate images, channels-last, with the dtype of `like`."""
    return torch.empty(size, dtype=like.dtype, memory_format=torch.channels_last)


def kernels() -> ctypes.CDLL:
    """Return the library of products, which must be available."""
    found = library("products")
    assert found is not None, "check `unit_for` first"
    return found


def unit_of(*tensors: Tensor) -> int:
    """Return the number of the unit that computes on these tensors, which have one dtype."""
    (dtype,) = {tensor.dtype for tensor in tensors}
    unit = unit_for(dtype)
    assert unit is not None, "check `unit_for` first"
    return unit


class StackArguments:
    """The arguments of a stack of convolutions: its images, bytes or fp32, its shapes and its weights."""

    def __init__(self, pixels: Tensor, weights: list[Tensor], strides: list[int], zeros: list[int]) -> None:
        if pixels.dtype not in (torch.uint8, torch.float32) or not pixels.is_cpu:
            raise ValueError(f"expected images of uint8 or float32 on the CPU, found {pixels.dtype}")
        are_fp32, in_planes = pixels.dtype is torch.float32, pixels.is_contiguous()
        self._pixels: Tensor | None = pixels if in_planes else channels_last(pixels)
        self.weights = [channels_last(weight) for weight in weights]
        shapes, self.sizes = shapes_of(
            pixels.shape, tuple(weight.shape for weight in weights), tuple(strides), tuple(zeros)
        )
        self.arguments = (
            self._pixels.data_ptr(), are_fp32, in_planes, shapes, len(weights), pointers(self.weights),
        )  # fmt: skip

    def give_pixels(self) -> Tensor:
        """Return the images that the kernels read, which the caller keeps from now on."""
        pixels, self._pixels = self._pixels, None
        assert pixels is not None
        return pixels
