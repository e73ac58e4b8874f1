import pytest
import torch
from torch.nn import functional as F

from atari_dqn.agent.convolution import Convolution
from atari_dqn.agent.pixel_layout import patches


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


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("pixels", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_output_and_gradients_are_those_of_a_convolution_and_a_relu(
    relu: bool, pixels: bool, padding: int
) -> None:
    layer = make(relu=relu, pixels=pixels, padding=padding)
    x = torch.randn(2, 4, 10, 11).requires_grad_()
    expected = plain(layer, x)
    upstream = torch.randn_like(expected)
    for ours, theirs in zip(
        results(layer, x, layer(x), upstream), results(layer, x, expected, upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pixels", [False, True])
def test_output_without_gradients_is_that_with_them(pixels: bool) -> None:
    layer, x = make(relu=True, pixels=pixels), torch.randn(2, 4, 9, 9)
    with torch.no_grad():
        assert torch.equal(layer(x), layer(x.clone().requires_grad_()).detach())


def test_gradients_of_bf16_are_fp32() -> None:
    layer = make(relu=True)
    layer(torch.randn(2, 4, 9, 9, dtype=torch.bfloat16)).sum().backward()
    assert (layer.weight.grad.dtype, layer.bias.grad.dtype) == (torch.float32, torch.float32)


def test_bf16_is_close_to_fp32() -> None:
    layer, x = make(relu=False), torch.randn(2, 4, 9, 9)
    wide, narrow = (x.to(dtype).requires_grad_() for dtype in (torch.float32, torch.bfloat16))
    expected = layer(wide)
    upstream = torch.randn_like(expected)
    for ours, theirs in zip(
        results(layer, narrow, layer(narrow), upstream.bfloat16()),
        results(layer, wide, expected, upstream),
        strict=True,
    ):
        torch.testing.assert_close(ours.float(), theirs, rtol=0.05, atol=0.1)


BOTH_FORMATS = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def apart(y: torch.Tensor) -> torch.Tensor:
    """Return what a layer puts out of patches as it does of frames: 9 patches are 3 × 3 pixels."""
    return y.transpose(1, 2).unflatten(2, (3, 3))


def assert_near(ours: torch.Tensor, theirs: torch.Tensor, dtype: torch.dtype) -> None:
    """Allow bf16, which resolves a 256th, a 30th of the largest number."""
    share = 1e-5 if dtype == torch.float32 else 1 / 30
    assert (ours.float() - theirs).abs().max() < share * theirs.abs().max()


@pytest.mark.usefixtures("either_library")
@BOTH_FORMATS
@pytest.mark.parametrize("pixels", [False, True])
def test_of_patches_it_makes_what_it_makes_of_frames_and_so_are_its_gradients(
    pixels: bool, dtype: torch.dtype
) -> None:
    layer, scale = make(relu=False, pixels=pixels, stride=3), 255 if pixels else 1
    frames = (torch.rand(2, 4, 9, 9) * scale).to(dtype).float()
    expected = plain(layer, frames)
    upstream = torch.randn_like(expected)
    weights = [layer.weight, layer.bias]
    found = apart(layer(patches(frames, (3,)).to(dtype)))
    assert_near(found, expected, dtype)
    for ours, theirs in zip(
        torch.autograd.grad(found, weights, upstream.to(dtype)),
        torch.autograd.grad(expected, weights, upstream),
        strict=True,
    ):
        assert_near(ours, theirs, dtype)


@pytest.mark.usefixtures("either_library")
@BOTH_FORMATS
def test_of_patches_it_has_its_relu(dtype: torch.dtype) -> None:
    x = torch.randn(2, 9, 36).to(dtype)
    assert torch.equal(make(relu=True, stride=3)(x), make(relu=False, stride=3)(x).relu())


@pytest.mark.usefixtures("either_library")
@BOTH_FORMATS
def test_of_patches_it_makes_the_same_without_gradients(dtype: torch.dtype) -> None:
    layer, x = make(relu=True, pixels=True, stride=3), torch.randn(2, 9, 36).to(dtype)
    with torch.no_grad():
        assert torch.equal(layer(x), layer(x.clone().requires_grad_()).detach())


def test_kernels_that_overlap_take_no_patches() -> None:
    with pytest.raises(AssertionError, match="overlap"):
        make(relu=True, stride=2)(torch.zeros(2, 9, 36))


@pytest.mark.usefixtures("either_library")
@BOTH_FORMATS
def test_gradient_by_patches_lies_in_memory_as_its_weight_does(dtype: torch.dtype) -> None:
    layer = make(relu=True, stride=3)
    layer(torch.randn(2, 9, 36, dtype=dtype)).sum().backward()
    assert layer.weight.grad.stride() == layer.weight.stride()


@torch.no_grad()
@pytest.mark.usefixtures("either_library")
@BOTH_FORMATS
def test_patches_meet_a_weight_that_has_changed(dtype: torch.dtype) -> None:
    layer, x = make(relu=False, stride=3), torch.randn(2, 9, 36, dtype=dtype)
    assert layer.bias is not None
    layer.bias.zero_()
    before = layer(x)
    layer.weight.mul_(2)
    assert torch.equal(layer(x), 2 * before)


@pytest.mark.parametrize("has_gradients", [True, False])
def test_bias_with_gaps_between_its_numbers_is_read_as_it_is(has_gradients: bool) -> None:
    layer, x = make(relu=False), torch.randn(2, 4, 9, 9)
    layer.bias.data = torch.randn(16)[::2]
    with torch.set_grad_enabled(has_gradients):
        y = layer(x)
    torch.testing.assert_close(y, plain(layer, x), rtol=1e-4, atol=1e-5)
