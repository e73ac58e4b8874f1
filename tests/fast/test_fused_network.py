"""A fused network against the plain one with the same weights."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from atari_dqn.agent.distributions import CategoricalValue, QuantileValue, ScalarValue
from atari_dqn.agent.heads import DuelingHead, LinearHead, SharedDuelingHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import NoisyLinear
from atari_dqn.agent.torsos import DopamineTorso, NatureTorso
from atari_dqn.fast import fused_network
from atari_dqn.fast.acceleration import Acceleration
from atari_dqn.fast.cpu.factored import MOST_ROWS
from atari_dqn.fast.cpu.library import unit_for, units
from atari_dqn.fast.fused_network import FusedNetwork

SIDE = 36


def frames(count: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 4, SIDE, SIDE), generator=generator, dtype=torch.uint8)


def stream(*, seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


pytestmark = pytest.mark.skipif(not units(), reason="no kernels of products on this machine")


@dataclass(frozen=True)
class Kind:
    head: type[LinearHead | DuelingHead] = DuelingHead
    output: Callable[[], ScalarValue | CategoricalValue | QuantileValue] = ScalarValue
    noisy: bool = False
    torso: type[NatureTorso | DopamineTorso] = NatureTorso
    hidden_units: int = 128
    precision: str = "fp32"

    def plain(self) -> QNetwork:
        output = self.output()
        layer = partial(NoisyLinear, sigma=0.5) if self.noisy else nn.Linear
        torso = self.torso(
            stack=4, frame_shape=(SIDE, SIDE), streams=self.head.streams, layer=layer,
            hidden_units=self.hidden_units,
        )  # fmt: skip
        head = self.head(torso.num_features, 4, output.size, layer=layer)
        network = QNetwork(torso, head, output, precision=self.precision)
        initialize(network, init="he_uniform", generator=stream())
        return network.requires_grad_(False)

    def made(self, *, fuse: bool = True) -> FusedNetwork:
        if self.precision == "bf16" and unit_for(torch.bfloat16) is None:
            pytest.skip("no kernels in bf16 on this machine")
        return Acceleration(torch.device("cpu"), fuse=fuse).network(self.plain())


ATOMS = partial(CategoricalValue, v_min=-1.0, v_max=1.0, num_atoms=51)
KINDS = {
    "linear": Kind(LinearHead),
    "linear, noisy": Kind(LinearHead, noisy=True),
    "linear, quantiles": Kind(LinearHead, partial(QuantileValue, num_quantiles=9)),
    "dueling": Kind(),
    "dueling, noisy": Kind(noisy=True),
    "dueling, atoms": Kind(output=ATOMS),
    "rainbow": Kind(output=ATOMS, noisy=True),
    "rainbow, bf16": Kind(output=ATOMS, noisy=True, precision="bf16"),
    "dueling, bf16": Kind(precision="bf16"),
    "shared, zeros around": Kind(SharedDuelingHead, ATOMS, torso=DopamineTorso),
}
RAINBOW = KINDS["rainbow"]
EACH_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The outputs of all fused forward passes."""
    made: list[Tensor] = []
    fused_forward = fused_network.forward

    def noted(*args, outputs: Tensor, **layers) -> None:
        made.append(outputs)
        fused_forward(*args, outputs=outputs, **layers)

    monkeypatch.setattr(fused_network, "forward", noted)
    return made


def near(kind: Kind) -> float:
    return 1e-5 if kind.precision == "fp32" else 0.02


@EACH_KIND
@pytest.mark.parametrize("count", [1, 5, 33])
@pytest.mark.parametrize("draws", [True, False])
def test_fused_outputs_are_those_of_the_plain_network(
    kind: Kind, count: int, draws: bool, calls: list[Tensor]
) -> None:
    rngs = [stream(seed=1), stream(seed=1)] if draws else [None, None]
    with torch.no_grad():
        found = kind.made().distribution(frames(count), rngs[0]).outputs
        expected = kind.plain().distribution(frames(count), rngs[1]).outputs
    assert len(calls) == 1
    torch.testing.assert_close(found, expected, rtol=near(kind), atol=near(kind))


def brighter(count: int) -> Tensor:
    """Make fp32 frames between bytes, as random shifts make them."""
    return frames(count).float() * torch.linspace(0.9, 1.1, count).view(count, 1, 1, 1)


MEMORY_FORMATS = {
    "in planes": torch.Tensor.contiguous,
    "channels last": partial(torch.Tensor.contiguous, memory_format=torch.channels_last),
    "every other": lambda images: images.repeat_interleave(2, dim=0)[::2],
}


@EACH_KIND
@pytest.mark.parametrize("in_format", MEMORY_FORMATS.values(), ids=MEMORY_FORMATS)
def test_fp32_frames_are_computed_by_the_kernels_too(
    kind: Kind, in_format: Callable[[Tensor], Tensor], calls: list[Tensor]
) -> None:
    images = in_format(brighter(5))
    with torch.no_grad():
        found = kind.made().distribution(images).outputs
        expected = kind.plain().distribution(images).outputs
    assert len(calls) == 1
    torch.testing.assert_close(found, expected, rtol=near(kind), atol=near(kind))


@EACH_KIND
def test_fused_gradients_of_fp32_frames_are_those_of_the_layers(kind: Kind, calls: list[Tensor]) -> None:
    found = gradients_of(kind.made(), brighter(9), stream(seed=1))
    assert len(calls) == 1
    assert_gradients_alike(kind, found, gradients_of(kind.plain(), brighter(9), stream(seed=1)))


def test_frames_of_inference_mode_can_be_learned_from(calls: list[Tensor]) -> None:
    with torch.inference_mode():
        images = brighter(2)
    found = gradients_of(RAINBOW.made(), images, stream(seed=1))
    assert calls == []
    assert_gradients_alike(RAINBOW, found, gradients_of(RAINBOW.plain(), images, stream(seed=1)))


def test_gradient_of_the_frames_is_computed_layer_by_layer(calls: list[Tensor]) -> None:
    of_frames = []
    for network in (RAINBOW.made(), RAINBOW.plain()):
        images = frames(2).float().requires_grad_()
        network.distribution(images).outputs.sum().backward()
        of_frames.append(images.grad)
    assert calls == []
    torch.testing.assert_close(*of_frames, rtol=1e-5, atol=1e-8)


@EACH_KIND
def test_layers_by_kernels_put_out_what_the_plain_ones_do(kind: Kind, calls: list[Tensor]) -> None:
    with torch.no_grad():
        found = kind.made(fuse=False).distribution(frames(5), stream(seed=1)).outputs
        expected = kind.plain().distribution(frames(5), stream(seed=1)).outputs
    assert calls == []
    torch.testing.assert_close(found, expected, rtol=near(kind), atol=near(kind))


def test_fused_pass_draws_the_same_numbers_as_the_layers() -> None:
    one, other = stream(), stream()
    with torch.no_grad():
        RAINBOW.made().distribution(frames(1), one)
        RAINBOW.plain().distribution(frames(1), other)
    assert torch.equal(one.get_state(), other.get_state())


def gradients(network: QNetwork, count: int, rng: torch.Generator | None) -> dict[str, Tensor | None]:
    return gradients_of(network, frames(count), rng)


def gradients_of(network: QNetwork, images: Tensor, rng: torch.Generator | None) -> dict[str, Tensor | None]:
    """Return those of all parameters, given a different one of each output."""
    network.requires_grad_(True).zero_grad()
    outputs = network.distribution(images, rng).outputs
    outputs.backward(torch.arange(outputs.numel()).view_as(outputs).sin())
    return {name: parameter.grad for name, parameter in network.named_parameters()}


Distance = Callable[[Tensor, Tensor], Tensor]


def largest(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).abs().max() / other.abs().max().clamp(min=1e-30)


def norm(one: Tensor, other: Tensor) -> Tensor:
    return (one - other).norm() / other.norm().clamp(min=1e-30)


def assert_alike(
    found: dict[str, Tensor | None],
    expected: dict[str, Tensor | None],
    *,
    near: float,
    distance: Distance = largest,
) -> None:
    """Assert that no two gradients are farther apart than `near`, and that the same are none."""
    for name, other in expected.items():
        one = found[name]
        if other is None or one is None:
            assert one is other, name
            continue
        assert one.stride() == other.stride(), name
        assert distance(one, other) <= near, name


def assert_gradients_alike(
    kind: Kind, found: dict[str, Tensor | None], expected: dict[str, Tensor | None]
) -> None:
    """Assert that gradients differ by roundings, which in bf16 may switch a ReLU whose input is near 0.

    This changes a few numbers by all that they are.
    """
    if kind.precision == "fp32":
        assert_alike(found, expected, near=1e-4)
    else:
        assert_alike(found, expected, near=0.2, distance=norm)


@EACH_KIND
@pytest.mark.parametrize("count", [1, 5, 33])
def test_fused_gradients_are_those_of_the_layers(kind: Kind, count: int, calls: list[Tensor]) -> None:
    network = kind.made()
    found = gradients(network, count, stream(seed=1))
    assert len(calls) == 1
    expected = gradients(kind.plain(), count, stream(seed=1))
    assert_gradients_alike(kind, found, expected)


@pytest.mark.parametrize("name", ["linear, noisy", "rainbow", "rainbow, bf16"])
def test_without_random_numbers_deviations_have_no_gradient(name: str) -> None:
    network = KINDS[name].made()
    found = gradients(network, 3, None)
    expected = gradients(KINDS[name].plain(), 3, None)
    assert found["torso.hidden.weight_sigma"] is None
    assert_gradients_alike(KINDS[name], found, expected)


def test_frozen_weights_get_no_gradient() -> None:
    network = RAINBOW.made().requires_grad_(True)
    network.torso.convolutions.requires_grad_(False)
    network.distribution(frames(2), stream()).outputs.sum().backward()
    assert {parameter.grad for parameter in network.torso.convolutions.parameters()} == {None}
    assert network.torso.hidden.weight.grad.abs().max() > 0


@pytest.mark.parametrize("name", ["torso.convolutions.0", "torso.hidden", "head.advantage"])
def test_weight_that_changed_before_the_backward_pass_is_refused(name: str) -> None:
    network = RAINBOW.made().requires_grad_(True)
    outputs = network.distribution(frames(2), stream()).outputs
    with torch.no_grad():
        network.get_submodule(name).get_parameter("weight").mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        outputs.sum().backward()


@pytest.mark.parametrize("name", ["dueling", "dueling, bf16", "rainbow", "rainbow, bf16", "linear"])
def test_gradient_that_is_not_written_is_the_one_that_would_be(name: str) -> None:
    network, factored = KINDS[name].made(), []
    written = gradients(network, 5, stream(seed=1))
    network.zero_grad()
    outputs = network.distribution(frames(5), stream(seed=1)).outputs
    with network.fused.appending_to(factored):
        outputs.backward(torch.arange(outputs.numel()).view_as(outputs).sin())
    (found,) = factored
    product = found.upstream.float().T @ found.x.float()
    made = [product] if found.noise is None else [product, product * torch.outer(*found.noise[::-1])]
    names = ["torso.hidden.weight", "torso.hidden.weight_sigma"][: len(made)]
    assert [id(weight) for weight in found.weights] == [id(network.get_parameter(each)) for each in names]
    assert_alike(dict(zip(names, made, strict=True)), {each: written[each] for each in names}, near=1e-5)
    others = {each: parameter.grad for each, parameter in network.named_parameters()}
    assert_alike(others, {each: None if each in names else written[each] for each in written}, near=0.0)


def test_gradient_of_more_rows_is_written() -> None:
    network, factored = KINDS["dueling"].made().requires_grad_(True), []
    with network.fused.appending_to(factored):
        network.distribution(frames(MOST_ROWS + 1)).outputs.sum().backward()
    assert factored == []
    assert network.torso.hidden.weight.grad is not None


@pytest.mark.parametrize("frozen", ["weight", "weight_sigma"])
def test_gradient_is_not_factored_if_a_weight_of_its_product_is_frozen(frozen: str) -> None:
    network, factored = RAINBOW.made().requires_grad_(True), []
    hidden = network.torso.hidden
    hidden.get_parameter(frozen).requires_grad_(False)
    with network.fused.appending_to(factored):
        network.distribution(frames(2), stream()).outputs.sum().backward()
    assert factored == []
    assert [hidden.weight.grad is None, hidden.weight_sigma.grad is None] == [
        frozen == "weight", frozen == "weight_sigma",
    ]  # fmt: skip


def test_parts_with_noise_of_their_own_are_seen_layer_by_layer(calls: list[Tensor]) -> None:
    with torch.no_grad():
        RAINBOW.made().distribution(frames(2), stream(), noise_rows=2)
    assert calls == []


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_weights_that_changed_are_seen(precision: str) -> None:
    network = Kind(precision=precision).made()
    with torch.no_grad():
        before = network.distribution(frames(1)).outputs
        for name in ("torso.convolutions.0", "torso.hidden", "head.advantage"):
            network.get_submodule(name).get_parameter("weight").mul_(1.5)
            after = network.distribution(frames(1)).outputs
            assert not torch.equal(after, before), name
            before = after


@EACH_KIND
def test_weights_that_were_assigned_are_read_fused_forward(kind: Kind, calls: list[Tensor]) -> None:
    network, other = kind.made(), kind.made()
    initialize(other, init="he_uniform", generator=stream(seed=9))
    with torch.no_grad():
        network.distribution(frames(1))
        network.load_state_dict(other.state_dict(), assign=True)
        found, expected = network.distribution(frames(1)).outputs, other.distribution(frames(1)).outputs
    assert len(calls) == 3
    assert torch.equal(found, expected)


def test_copy_of_a_network_reads_its_own_weights() -> None:
    network = RAINBOW.made()
    with torch.no_grad():
        before = network.distribution(frames(1)).outputs
        other = copy.deepcopy(network)
        for weight in other.parameters():
            weight.zero_()
        assert not other.distribution(frames(1)).outputs.any()
        assert torch.equal(network.distribution(frames(1)).outputs, before)


@pytest.mark.parametrize("hidden_units", [20, 40, 100])
def test_layer_that_does_not_fit_is_a_call_of_its_own(hidden_units: int, calls: list[Tensor]) -> None:
    with torch.no_grad():
        Kind(LinearHead, hidden_units=hidden_units).made().distribution(frames(1))
    assert calls == []


CHANGES: dict[str, tuple[Callable[[QNetwork], object], str]] = {
    "double": (torch.nn.Module.double, "found torch.float64 on cpu, contiguous"),
    "device": (lambda network: network.to("meta"), "found torch.float32 on meta, contiguous"),
    "head": (lambda network: network.head.double(), "found torch.float64 on cpu, contiguous"),
    "layout": (
        lambda network: setattr(
            network.torso.hidden, "weight", nn.Parameter(network.torso.hidden.weight.T.contiguous().T)
        ),
        "found torch.float32 on cpu, not contiguous",
    ),
}


@pytest.mark.parametrize("name", ["linear", "rainbow", "dueling, bf16"])
@pytest.mark.parametrize(("change", "found"), CHANGES.values(), ids=CHANGES)
def test_parameters_that_the_kernels_cannot_read_are_refused(
    name: str, change: Callable[[QNetwork], object], found: str
) -> None:
    network = KINDS[name].made()
    change(network)
    for rng in (None, stream()):
        with torch.no_grad(), pytest.raises(ValueError, match=found):
            network.distribution(frames(1), rng)


def test_gradients_of_convolutions_in_double_precision_are_those_of_the_layers() -> None:
    network = KINDS["dueling"].made()
    network.torso.convolutions.double()
    found = gradients(network, 3, None)
    for name, expected in gradients(KINDS["dueling"].plain(), 3, None).items():
        torch.testing.assert_close(found[name].float(), expected, rtol=1e-4, atol=1e-4)
