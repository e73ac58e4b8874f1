"""Steps by gradients that are not written against steps by the same ones written."""

from dataclasses import replace

import pytest
import torch
from kernel_checks import threads
from torch import Tensor

import atari_dqn.fast.cpu.products  # noqa: F401  torch's operators of ours
from atari_dqn.fast.cpu.factored import FactoredGradient, Rule
from atari_dqn.fast.cpu.library import units
from atari_dqn.fast.optimizers import gradient_norm, move

pytestmark = pytest.mark.skipif(not units(), reason="no kernels of products on this machine")

OUTPUTS, INPUTS = 96, 160
"""More than the kernels take at a time, and no multiple of it."""
RULES: dict[Rule, tuple[float, ...]] = {
    "rmsprop": (0.01, 0.01, 0.05, 0.9, 0.1),
    "adam": (0.01, 1e-3, 0.1, 0.99, 0.01, 0.7),
}
EACH_RULE = pytest.mark.parametrize("rule", RULES)


def made(dtype: torch.dtype, *, rows: int = 32, noisy: bool = False) -> FactoredGradient:
    torch.manual_seed(0)
    weights = tuple(torch.randn(OUTPUTS, INPUTS) for _ in range(1 + noisy))
    x, upstream = torch.randn(rows, INPUTS).relu().to(dtype), torch.randn(rows, OUTPUTS).to(dtype)
    noise = (torch.randn(INPUTS), torch.randn(OUTPUTS)) if noisy else None
    return FactoredGradient(weights, x, upstream, noise)


def written(gradient: FactoredGradient) -> list[Tensor]:
    """Return the gradients of the weights as the backward pass writes them."""
    x, upstream, weight = gradient.x, gradient.upstream, gradient.weights[0]
    if gradient.noise is None:
        arguments = (upstream, x, weight.to(x.dtype), False)
        return [torch.ops.atari_dqn.multiply_backward(*arguments)[1]]
    arguments = (upstream, x, *gradient.weights, *gradient.noise, False)
    return list(torch.ops.atari_dqn.multiply_noisy_backward(*arguments)[1:3])


def averages(gradient: FactoredGradient) -> list[tuple[Tensor, Tensor]]:
    """Return two averages of each weight, as some steps leave them."""
    torch.manual_seed(1)
    pairs = [(torch.randn(OUTPUTS, INPUTS) / 100, torch.rand(OUTPUTS, INPUTS)) for _ in gradient.weights]
    return [(mean, square + mean.square()) for mean, square in pairs]


@EACH_RULE
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("rows", [1, 32, 33])
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_step_ends_to_the_bit_where_that_by_a_written_gradient_does(
    dtype: torch.dtype, rule: Rule, noisy: bool, rows: int, scale: float
) -> None:
    gradient = replace(made(dtype, rows=rows, noisy=noisy), scale=scale)
    other = made(dtype, rows=rows, noisy=noisy)
    found, expected = averages(gradient), averages(gradient)
    gradient.step(rule, found, RULES[rule])
    of_weights = [each * torch.tensor(scale) for each in written(other)]
    columns = zip(other.weights, of_weights, expected, strict=True)
    assert move(rule, [(weight, each, *pair) for weight, each, pair in columns], *RULES[rule])
    for one, two in zip(gradient.weights, other.weights, strict=True):
        assert torch.equal(one, two)
    for pair, other_pair in zip(found, expected, strict=True):
        assert torch.equal(pair[0], other_pair[0])
        assert torch.equal(pair[1], other_pair[1])


def test_rmsprop_of_a_variance_that_rounding_made_negative_stays_finite() -> None:
    gradient = made(torch.float32)
    averages = [(torch.full((OUTPUTS, INPUTS), 100.0), torch.full((OUTPUTS, INPUTS), 10_000.0 * (1 - 1e-6)))]
    gradient.step("rmsprop", averages, (0.01, 1e-3, 0.0, 1.0, 0.0))  # the averages do not change
    assert gradient.weights[0].isfinite().all()


@EACH_RULE
def test_step_is_the_same_by_any_number_of_threads(dtype: torch.dtype, rule: Rule) -> None:
    ends = []
    for count in (1, 2):
        gradient = made(dtype, noisy=True)
        with threads(count):
            gradient.step(rule, averages(gradient), RULES[rule])
        ends.append(gradient.weights)
    assert all(map(torch.equal, *ends))


def test_step_raises_torchs_count_of_changes() -> None:
    gradient = made(torch.float32)
    before = gradient.weights[0]._version
    gradient.step("adam", averages(gradient), RULES["adam"])
    assert gradient.weights[0]._version > before


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("rows", [1, 32, 33])
def test_squares_are_those_of_the_written_gradient(dtype: torch.dtype, noisy: bool, rows: int) -> None:
    gradient = made(dtype, rows=rows, noisy=noisy)
    exact = sum(float(each.double().square().sum()) for each in written(gradient))
    assert gradient.squares() == pytest.approx(exact, rel=1e-5)


def test_squares_are_the_same_by_any_number_of_threads(dtype: torch.dtype) -> None:
    gradient, found = made(dtype, noisy=True), []
    for count in (1, 2):
        with threads(count):
            found.append(gradient.squares())
    assert found[0] == found[1]


def test_squares_of_rows_that_cancel_are_not_negative() -> None:
    half = torch.randn(16, INPUTS)
    x, upstream = torch.cat([half, half]), torch.randn(16, OUTPUTS)
    gradient = replace(made(torch.float32), x=x, upstream=torch.cat([upstream, -upstream]))
    assert 0.0 <= gradient.squares() <= 1e-4


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("side", ["x", "upstream"])
def test_norm_is_not_finite_where_a_side_is_not(side: str, value: float) -> None:
    gradient = made(torch.float32)
    getattr(gradient, side)[3, 5] = value
    assert not gradient_norm([torch.ones(3)], [gradient]).isfinite()


def test_norm_is_of_what_is_written_and_what_is_not() -> None:
    gradient, other = made(torch.float32, noisy=True), torch.full((7,), 100.0)
    exact = torch.cat([each.double().flatten() for each in (other, *written(gradient))]).norm()
    torch.testing.assert_close(gradient_norm([other], [gradient]).double(), exact, rtol=1e-6, atol=0.0)
