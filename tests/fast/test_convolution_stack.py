"""The stack of convolutions in one kernel call, against one convolution after another."""

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from kernel_checks import assert_near, threads
from torch import Tensor
from torch.nn import functional as F

STRIDES = [4, 2, 1]
WITHOUT_ZEROS = [0] * 12
DOPAMINE = [2, 2, 2, 2, 1, 2, 1, 2, 1, 1, 1, 1]
"""Above, below, left and right of each layer's input; one more below and right of the second's."""
EACH_ZEROS = pytest.mark.parametrize("zeros", [WITHOUT_ZEROS, DOPAMINE], ids=["none", "Dopamine's"])
EACH_BATCH = pytest.mark.parametrize("batch", [1, 9, 32])
EACH_SCREEN = pytest.mark.parametrize("areas", [False, True], ids=["noise", "areas of one colour"])


class Stack:
    """The Nature convolutions with random weights, and random frames of bytes."""

    def __init__(self, batch: int, zeros: list[int], dtype: torch.dtype, *, areas: bool = False) -> None:
        torch.manual_seed(0)
        self.zeros = zeros
        self.frames = torch.randint(0, 256, (batch, 4, 84, 84), dtype=torch.uint8)
        if areas:  # of other sizes in each image
            for place, image in enumerate(self.frames):
                image[:, : 70 - 2 * place, 20:] = 87
                image[:, 75:, place:] = 0
        sizes = (((32, 4, 8, 8), 0.1 / 255), ((64, 32, 4, 4), 0.05), ((64, 64, 3, 3), 0.05))
        self.weights = [
            (torch.randn(size) * scale).to(dtype).contiguous(memory_format=torch.channels_last)
            for size, scale in sizes
        ]
        self.biases = [torch.randn(len(weight)) * 0.1 for weight in self.weights]
        self.outputs: Sequence[Tensor] = ()

    def encode(self, *, all_layers: bool = True) -> Tensor:
        self.outputs = torch.ops.atari_dqn.encode(
            self.frames, self.weights, self.biases, STRIDES, self.zeros, all_layers
        )
        return self.outputs[0]

    def gradients(self, upstream: Tensor) -> Sequence[Tensor]:
        self.encode()
        return torch.ops.atari_dqn.encode_backward(
            upstream, self.frames, self.weights, self.outputs, STRIDES, self.zeros
        )

    def one_by_one(self) -> tuple[Tensor, list[Tensor]]:
        """Compute the encoding in double precision, each output rounded, and the tensors with gradients."""
        x, dtype = self.frames.double(), self.weights[0].dtype
        wide = [tensor.double().requires_grad_() for tensor in (*self.weights, *self.biases)]
        for place, stride in enumerate(STRIDES):
            above, below, left, right = self.zeros[4 * place : 4 * place + 4]
            x = F.conv2d(F.pad(x, (left, right, above, below)), wide[place], wide[3 + place], stride).relu()
            x = x + (x.to(dtype).double() - x).detach()
        return x.flatten(1), wide

    def upstream(self) -> Tensor:
        encoded = self.encode()
        return torch.randn(encoded.shape).to(encoded.dtype)


@EACH_SCREEN
@EACH_ZEROS
@EACH_BATCH
def test_encoding_is_that_of_layers_one_by_one(
    batch: int, zeros: list[int], dtype: torch.dtype, areas: bool
) -> None:
    stack = Stack(batch, zeros, dtype, areas=areas)
    assert_near(stack.encode(), stack.one_by_one()[0].detach())


@EACH_SCREEN
@EACH_ZEROS
@EACH_BATCH
def test_gradients_are_those_of_layers_one_by_one(
    batch: int, zeros: list[int], dtype: torch.dtype, areas: bool
) -> None:
    stack = Stack(batch, zeros, dtype, areas=areas)
    exact, wide = stack.one_by_one()
    upstream = stack.upstream()
    # between layers bf16 rounds the upstream gradient, by a 512th each time; and where an output is near zero
    # it may switch a ReLU, which changes a few gradients by much more
    allowed, order = (1e-5, math.inf) if dtype == torch.float32 else (1 / 100, 2)
    for ours, theirs in zip(
        stack.gradients(upstream), torch.autograd.grad(exact, wide, upstream.double()), strict=True
    ):
        size = torch.linalg.vector_norm(theirs, order)
        assert torch.linalg.vector_norm(ours - theirs, order) <= allowed * size


@EACH_SCREEN
@EACH_ZEROS
@EACH_BATCH
def test_bits_are_the_same_with_any_number_of_threads(
    batch: int, zeros: list[int], dtype: torch.dtype, areas: bool
) -> None:
    stack = Stack(batch, zeros, dtype, areas=areas)
    upstream, found = stack.upstream(), []
    for count in (1, 2, 3):
        with threads(count):
            found.append([stack.encode(), *stack.gradients(upstream)])
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


@EACH_SCREEN
def test_encoding_of_an_image_does_not_depend_on_the_others(dtype: torch.dtype, areas: bool) -> None:
    stack = Stack(9, WITHOUT_ZEROS, dtype, areas=areas)
    encoded = stack.encode()
    stack.frames = stack.frames[4:5]
    assert torch.equal(stack.encode(), encoded[4:5])


@EACH_SCREEN
def test_order_of_the_bytes_in_memory_makes_no_difference(dtype: torch.dtype, areas: bool) -> None:
    stack = Stack(3, WITHOUT_ZEROS, dtype, areas=areas)
    upstream = stack.upstream()
    before = [stack.encode(), *stack.gradients(upstream)]
    stack.frames = stack.frames.contiguous(memory_format=torch.channels_last)
    assert all(map(torch.equal, before, [stack.encode(), *stack.gradients(upstream)]))


@pytest.mark.parametrize(("channels", "side"), [(2, 84), (4, 83), (8, 60)])
def test_frames_of_other_sizes_and_stacks_are_encoded(channels: int, side: int, dtype: torch.dtype) -> None:
    stack = Stack(2, WITHOUT_ZEROS, dtype)
    stack.frames = torch.randint(0, 256, (2, channels, side, side), dtype=torch.uint8)
    stack.weights[0] = torch.randn(32, channels, 16 // channels * 2, 8).to(dtype) / 2550
    if channels * 8 % 32:
        stack.weights[0] = torch.randn(32, channels, 8, 16).to(dtype) / 2550
    assert_near(stack.encode(), stack.one_by_one()[0].detach())


def test_kept_outputs_change_nothing(dtype: torch.dtype) -> None:
    stack = Stack(3, DOPAMINE, dtype)
    assert torch.equal(stack.encode(all_layers=False), stack.encode(all_layers=True))
    assert len(stack.outputs) == len(STRIDES)


def test_gradient_passes_an_output_that_is_nan(dtype: torch.dtype) -> None:
    stack = Stack(2, WITHOUT_ZEROS, dtype)
    upstream = stack.upstream()
    stack.biases[-1][5] = torch.nan
    of_bias = stack.gradients(upstream)[-1]
    assert_near(of_bias[5], upstream.view(2, 64, -1)[:, 5].double().sum())


@pytest.mark.parametrize("images", [torch.uint8, torch.float32])
def test_an_empty_batch_is_refused(images: torch.dtype, dtype: torch.dtype) -> None:
    stack = Stack(2, WITHOUT_ZEROS, dtype)
    stack.frames = stack.frames[:0].to(images)
    with pytest.raises(ValueError, match="too small"):
        stack.encode()


@pytest.mark.parametrize("images", [torch.float64, torch.float16, torch.int32, torch.bool])
def test_images_of_another_type_are_refused(images: torch.dtype, dtype: torch.dtype) -> None:
    stack = Stack(2, WITHOUT_ZEROS, dtype)
    stack.frames = stack.frames.to(images)
    with pytest.raises(ValueError, match="expected images of uint8 or float32"):
        stack.encode()


def test_an_image_that_is_nan_is_not_lost(dtype: torch.dtype) -> None:
    stack = Stack(2, WITHOUT_ZEROS, dtype)
    stack.frames = stack.frames.float()
    stack.frames[1] = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32)
    encoded = stack.encode()
    assert encoded[1].isnan().all()
    assert encoded[0].isfinite().all()


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_floats_are_encoded_to_the_bit_as_the_bytes_that_they_equal(
    order: torch.memory_format, dtype: torch.dtype
) -> None:
    stack = Stack(3, WITHOUT_ZEROS, dtype)
    upstream = stack.upstream()
    of_bytes = [stack.encode(), *stack.gradients(upstream)]
    stack.frames = stack.frames.float().contiguous(memory_format=order)
    assert all(map(torch.equal, of_bytes, [stack.encode(), *stack.gradients(upstream)]))


@pytest.mark.parametrize("side", [84, 83])
def test_floats_between_bytes_are_rounded_to_the_nearest_number_of_the_format(
    side: int, dtype: torch.dtype
) -> None:
    stack = Stack(2, WITHOUT_ZEROS, dtype)
    stack.frames = torch.rand(2, 4, side, side) * 280
    encoded = stack.encode()
    stack.frames = stack.frames.to(dtype).float()
    assert torch.equal(stack.encode(), encoded)
    assert_near(encoded, stack.one_by_one()[0].detach())


def few_filters(stack: Stack) -> None:
    stack.weights[2], stack.biases[2] = stack.weights[2][:20], stack.biases[2][:20]


def one_bias(stack: Stack) -> None:
    stack.biases[0] = stack.biases[0][:1]


def other_format(stack: Stack) -> None:
    stack.weights[2] = stack.weights[2].double()


@pytest.mark.parametrize("change", [few_filters, one_bias, other_format])
def test_weights_and_biases_that_the_kernels_do_not_support_are_refused(
    change: Callable[[Stack], None], dtype: torch.dtype
) -> None:
    stack = Stack(1, WITHOUT_ZEROS, dtype)
    change(stack)
    with pytest.raises((AssertionError, ValueError)):
        stack.encode()
