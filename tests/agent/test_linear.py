import pytest
import torch
from torch import nn
from torch.nn import functional as F

from atari_dqn.agent import linear
from atari_dqn.agent.linear import QuickLinear
from atari_dqn.agent.low_precision import HAS_ONEDNN


@pytest.fixture
def layer() -> QuickLinear:
    torch.manual_seed(0)
    return QuickLinear(70, 30)


def both(layer: nn.Linear, x: torch.Tensor, upstream: torch.Tensor) -> list[list[torch.Tensor]]:
    """Return output and gradients of x, weight and bias: the layer's, and those of PyTorch's own function."""
    results = []
    for function in (layer, lambda x: F.linear(x, layer.weight, layer.bias)):
        x = x.detach().requires_grad_()
        layer.zero_grad(set_to_none=True)
        y = function(x)
        y.backward(upstream)
        results.append([y.detach(), x.grad, layer.weight.grad, layer.bias.grad])
    return results


def test_this_build_of_torch_has_the_quick_product() -> None:
    assert HAS_ONEDNN


@pytest.mark.usefixtures("either_library")
def test_output_and_gradients_are_those_of_a_linear_layer(layer: QuickLinear) -> None:
    x, upstream = torch.randn(32, 70), torch.randn(32, 30)
    for ours, theirs in zip(*both(layer, x, upstream), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("either_library")
def test_a_gradient_that_is_one_number_everywhere_passes_through(layer: QuickLinear) -> None:
    x = torch.randn(32, 70)
    for ours, theirs in zip(*both(layer, x, torch.ones(()).expand(32, 30)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_output_is_in_the_format_of_the_input(layer: QuickLinear, dtype: torch.dtype) -> None:
    assert layer(torch.randn(4, 70, dtype=dtype)).dtype == dtype


def test_gradients_of_bf16_products_are_fp32_and_close_to_those_of_fp32(layer: QuickLinear) -> None:
    x, upstream = torch.randn(32, 70), torch.randn(32, 30)
    layer(x).backward(upstream)
    expected = layer.weight.grad
    layer.zero_grad()
    layer(x.bfloat16()).backward(upstream.bfloat16())
    assert layer.weight.grad.dtype == torch.float32
    torch.testing.assert_close(layer.weight.grad, expected, rtol=0.05, atol=0.1)


def test_learning_takes_the_rounded_weight_that_acting_made(layer: QuickLinear) -> None:
    x = torch.randn(32, 70, dtype=torch.bfloat16)
    with torch.inference_mode():
        layer(x)
    made = layer.rounded.of(layer.weight, x.dtype)
    layer(x).sum().backward()
    assert layer.rounded.of(layer.weight, x.dtype) is made


@pytest.mark.usefixtures("either_library")
def test_gradients_lie_in_memory_as_the_weights_do(layer: QuickLinear) -> None:
    layer(torch.randn(32, 70)).sum().backward()
    assert layer.weight.grad.stride() == layer.weight.stride()


@pytest.mark.usefixtures("either_library")
@pytest.mark.parametrize("part", [0, 1])
def test_half_of_a_wider_input_gives_what_a_copy_of_it_gives(layer: QuickLinear, part: int) -> None:
    strided, upstream = torch.randn(32, 140).chunk(2, dim=1)[part], torch.randn(32, 30)
    for ours, theirs in zip(
        both(layer, strided, upstream), both(layer, strided.contiguous(), upstream), strict=True
    ):
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_backward_pass_of_half_of_a_wider_input_has_a_copy_that_onednns_product_takes(
    layer: QuickLinear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "has_quick_fp32_products", lambda: False)
    # of a strided input the weights' gradient took 36 to 11,000 ms where 0.02 to 4 ms are enough
    function = layer(torch.randn(32, 140)[:, :70]).grad_fn
    assert function is not None
    assert function.saved_tensors[0].is_contiguous()


@pytest.mark.usefixtures("either_library")
@pytest.mark.parametrize("has_gradients", [True, False])
def test_bias_with_gaps_between_its_numbers_is_read_as_it_is(layer: QuickLinear, has_gradients: bool) -> None:
    layer.bias.data = torch.randn(60)[::2]
    x = torch.randn(3, 70)
    with torch.set_grad_enabled(has_gradients):
        y = layer(x)
    torch.testing.assert_close(y, F.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("either_library")
def test_some_outputs_have_their_biases_where_these_have_gaps(layer: QuickLinear) -> None:
    layer.bias.data = torch.randn(60)[::2]
    x = torch.randn(3, 70)
    with torch.no_grad():
        expected = F.linear(x, layer.weight, layer.bias)[:, 10:20]
        torch.testing.assert_close(layer.some(x, slice(10, 20)), expected, rtol=1e-5, atol=1e-5)
