import pytest
import torch
from torch.nn import functional as F

from atari_dqn.agents.convolution import Convolution


def make(*, relu: bool, pixels: bool = False, padding: int = 0, stride: int = 2) -> Convolution:
    torch.manual_seed(0)
    layer = Convolution(4, 8, 3, stride, relu=relu, pixels=pixels, padding=padding)
    return layer.to(memory_format=torch.channels_last)


def plain(layer: Convolution, x: torch.Tensor) -> torch.Tensor:
    """Return what PyTorch's own functions make of it."""
    y = F.conv2d(x * layer.scale, layer.weight, layer.bias, layer.stride, layer.padding)
    return y.relu() if layer.relu else y


def results(
    layer: Convolution, x: torch.Tensor, y: torch.Tensor, upstream: torch.Tensor
) -> list[torch.Tensor]:
    """Return the output and the gradients of x, weight and bias."""
    return [y.detach(), *torch.autograd.grad(y, [x, layer.weight, layer.bias], upstream)]


@pytest.mark.parametrize("stride", [2, 3], ids=["kernels overlap", "kernels do not overlap"])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("pixels", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_output_and_gradients_are_those_of_a_convolution_and_a_relu(
    relu: bool, pixels: bool, padding: int, stride: int
) -> None:
    layer = make(relu=relu, pixels=pixels, padding=padding, stride=stride)
    x = torch.randn(2, 4, 10, 11).requires_grad_()  # three kernels side by side leave some out
    expected = plain(layer, x)
    upstream = torch.randn_like(expected)
    for ours, theirs in zip(
        results(layer, x, layer(x), upstream), results(layer, x, expected, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stride", [2, 3], ids=["kernels overlap", "kernels do not overlap"])
def test_output_without_gradients_is_that_with_them(stride: int) -> None:
    layer, x = make(relu=True, stride=stride), torch.randn(2, 4, 9, 9)
    with torch.no_grad():
        assert torch.equal(layer(x), layer(x.clone().requires_grad_()).detach())


@pytest.mark.parametrize("stride", [2, 3], ids=["kernels overlap", "kernels do not overlap"])
def test_gradients_of_bf16_are_fp32(stride: int) -> None:
    layer = make(relu=True, stride=stride)
    layer(torch.randn(2, 4, 9, 9, dtype=torch.bfloat16)).sum().backward()
    assert (layer.weight.grad.dtype, layer.bias.grad.dtype) == (torch.float32, torch.float32)
