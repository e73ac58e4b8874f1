"""Each kernel against the same operation in double precision, of the same rounded numbers."""

import pytest
import torch
from kernel_checks import assert_near, threads
from torch import Tensor
from torch.nn import functional as F

from atari_dqn.fast.cpu import products
from atari_dqn.fast.cpu.library import units

PRODUCTS = [(32, 3136, 512), (1, 576, 256), (8, 64, 32), (9, 64, 32), (33, 96, 64)]  # rows, inputs, outputs
ODD_PRODUCTS = [(32, 512, 306), (9, 64, 51), (1, 64, 33), (3, 96, 95)]  # for fp32 alone
EACH_PRODUCT = pytest.mark.parametrize("sizes", PRODUCTS + ODD_PRODUCTS, ids=str)


class Multiplied:
    """A fully connected layer, its arguments drawn, by the kernels and in double precision."""

    def __init__(self, sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
        rows, inputs, outputs = sizes
        torch.manual_seed(0)
        self.x = torch.randn(rows, inputs).to(dtype)
        self.weight = (torch.randn(outputs, inputs) * 0.05).to(dtype)
        self.bias = torch.randn(outputs)
        self.wide = [tensor.double().requires_grad_() for tensor in (self.x, self.weight, self.bias)]
        self.exact = F.linear(*self.wide)
        self.upstream = torch.randn(self.exact.shape).to(dtype)
        if not products.fits_product(self.weight.shape, dtype):
            pytest.skip("outputs that are no multiple of 32 are for fp32")

    def forward(self) -> Tensor:
        return torch.ops.atari_dqn.multiply(self.x, self.weight, self.bias)

    def gradients(self) -> list[Tensor]:
        return torch.ops.atari_dqn.multiply_backward(self.upstream, self.x, self.weight, True)


class NoisyMultiplied:
    """A noisy layer under one noise, by the kernels and in double precision."""

    def __init__(self, sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
        plain = Multiplied(sizes, dtype)
        _, inputs, outputs = sizes
        self.x, self.bias, self.upstream = plain.x, plain.bias, plain.upstream
        self.mean, self.deviation = torch.randn(outputs, inputs) * 0.05, torch.randn(outputs, inputs) * 0.05
        self.bias_deviation = torch.randn(outputs)
        self.noise_in, self.noise_out = torch.randn(inputs), torch.randn(outputs)
        drawn = (self.x, self.mean, self.deviation, self.bias, self.bias_deviation)
        self.wide = [tensor.double().requires_grad_() for tensor in drawn]
        x, mean, deviation, bias, bias_deviation = self.wide
        noise_out = self.noise_out.double()
        noise = noise_out[:, None] * self.noise_in.double()
        self.exact = F.linear(x, mean + deviation * noise, bias + bias_deviation * noise_out)

    def forward(self) -> Tensor:
        return torch.ops.atari_dqn.multiply_noisy(
            self.x, self.mean, self.deviation, self.noise_in, self.noise_out, self.bias, self.bias_deviation
        )  # fmt: skip

    def gradients(self) -> list[Tensor]:
        return torch.ops.atari_dqn.multiply_noisy_backward(
            self.upstream, self.x, self.mean, self.deviation, self.noise_in, self.noise_out, True
        )  # fmt: skip


@EACH_PRODUCT
def test_noisy_product_is_that_in_double_precision(sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    case = NoisyMultiplied(sizes, dtype)
    assert_near(case.forward(), case.exact)


@EACH_PRODUCT
def test_gradients_of_a_noisy_product_are_those_in_double_precision(
    sizes: tuple[int, int, int], dtype: torch.dtype
) -> None:
    case = NoisyMultiplied(sizes, dtype)
    exact = torch.autograd.grad(case.exact, case.wide, case.upstream.double())
    for ours, theirs in zip(case.gradients(), exact, strict=True):
        assert_near(ours, theirs, roundings=2)  # of each noisy weight, and of what comes out


@EACH_PRODUCT
def test_product_is_that_in_double_precision(sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    case = Multiplied(sizes, dtype)
    assert_near(case.forward(), case.exact)


@EACH_PRODUCT
def test_gradients_of_a_product_are_those_in_double_precision(
    sizes: tuple[int, int, int], dtype: torch.dtype
) -> None:
    case = Multiplied(sizes, dtype)
    exact = torch.autograd.grad(case.exact, case.wide, case.upstream.double())
    for ours, theirs in zip(case.gradients(), exact, strict=True):
        assert_near(ours, theirs)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [(kind, sizes) for kind in (Multiplied, NoisyMultiplied) for sizes in (PRODUCTS[0], ODD_PRODUCTS[0])],
    ids=str,
)
def test_bits_are_the_same_with_any_number_of_threads(kind, sizes, dtype: torch.dtype) -> None:
    case = kind(sizes, dtype)
    found = []
    for count in (1, 2, 3):
        with threads(count):
            found.append([case.forward(), *case.gradients()])
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


def test_not_a_number_is_not_lost(dtype: torch.dtype) -> None:
    case = Multiplied(PRODUCTS[0], dtype)
    case.x.view(-1)[0] = torch.nan
    _, of_weight, _ = case.gradients()
    assert case.forward().isnan().any()
    assert of_weight.isnan().any()


@pytest.mark.parametrize(
    "convolution", [(33, 4, 8, 8), (32, 4, 3, 3)], ids=["filters are no blocks", "rows are no blocks"]
)
def test_stack_with_a_later_convolution_that_does_not_fit_is_left_to_torch(
    convolution: tuple[int, ...],
) -> None:
    first = (32, 4, 8, 8)
    assert products.fits_stack([first, (32, 32, 4, 4)], torch.float32)
    assert not products.fits_stack([first, convolution], torch.float32)


@pytest.mark.skipif(not units(), reason="no kernels of products on this machine")
@pytest.mark.parametrize("size", [(4, 64), (32, 36)], ids=["outputs", "inputs"])
def test_product_whose_sizes_the_kernels_do_not_support_is_refused(size: tuple[int, int]) -> None:
    weight, bias = torch.zeros(size), torch.zeros(size[0])
    x, upstream, noise = torch.zeros(2, size[1]), torch.zeros(2, size[0]), (torch.zeros(size[1]), bias)
    with pytest.raises(AssertionError):
        torch.ops.atari_dqn.multiply(x, weight, bias)
    with pytest.raises(AssertionError):
        torch.ops.atari_dqn.multiply_backward(upstream, x, weight, True)
    with pytest.raises(AssertionError):
        torch.ops.atari_dqn.multiply_noisy(x, weight, weight, *noise, bias, bias)
    with pytest.raises(AssertionError):
        torch.ops.atari_dqn.multiply_noisy_backward(upstream, x, weight, weight, *noise, True)
