"""Acceleration of a finished network: the classes it changes, equal results, one inspection."""

import copy
from collections.abc import Callable
from functools import partial

import pytest
import torch
from tiny import CPU, begun, ticks_of, tiny_spec
from torch import Tensor, nn
from without_kernels import leave_to_torch

from atari_dqn.agent.heads import DuelingHead, LinearHead
from atari_dqn.agent.impala import ImpalaTorso
from atari_dqn.agent.init import initialize
from atari_dqn.agent.iqn import ImplicitQuantileNetwork
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import NoisyLinear
from atari_dqn.agent.spectral import SpectralConv2d
from atari_dqn.agent.torsos import DataEfficientTorso, DopamineTorso, NatureTorso
from atari_dqn.assembly.parts import build_learner
from atari_dqn.fast import structure, torsos
from atari_dqn.fast.acceleration import Acceleration
from atari_dqn.fast.cpu.library import units
from atari_dqn.fast.fused_network import FusedNetwork
from atari_dqn.fast.layers import FastNoisyLinear
from atari_dqn.fast.torsos import PatchTorso, StackedTorso, UnfoldedTorso

HAS_KERNELS = pytest.mark.skipif(not units(), reason="no kernels of products on this machine")
GPU = torch.device("cuda")
"""A network may stay on the CPU: the classes of its modules depend on this alone."""
BTR_LN = partial(ImpalaTorso, spectral_norm=True, pool_size=6, layer_norm=True)
STACKS = (NatureTorso, DopamineTorso, DataEfficientTorso)
TORSOS = (*STACKS, ImpalaTorso)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def frames(count: int = 5, *, dtype: torch.dtype = torch.uint8) -> Tensor:
    return torch.randint(0, 256, (count, 4, 84, 84), generator=stream(), dtype=torch.uint8).to(dtype)


def make_network(torso_type: type = NatureTorso, *, noisy: bool = False, iqn: bool = False) -> QNetwork:
    layer = partial(NoisyLinear, sigma=0.5) if noisy else nn.Linear
    torso = torso_type(stack=4, frame_shape=(84, 84), layer=layer)
    head = LinearHead(torso.num_features, 6, layer=layer)
    counts = {"num_quantiles": 4, "num_target_quantiles": 4, "num_policy_quantiles": 4}
    network = ImplicitQuantileNetwork(torso, head, **counts) if iqn else QNetwork(torso, head)
    initialize(network, init="he_uniform", generator=stream())
    return network


def outputs_and_gradients(network: QNetwork, shown: Tensor, *, rows: int = 1) -> list[Tensor]:
    network.zero_grad()
    outputs = network.distribution(shown, stream(1), noise_rows=rows).outputs
    outputs.square().sum().backward()
    return [outputs.detach(), *(weight.grad for weight in network.parameters() if weight.grad is not None)]


def assert_alike(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).abs().max() <= 1e-4 * other.abs().max()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize(
    ("torso_type", "device"), [*((each, CPU) for each in TORSOS), *((each, GPU) for each in STACKS)]
)
def test_network_computes_what_the_plain_one_does(
    torso_type: type, device: torch.device, dtype: torch.dtype
) -> None:
    shown = frames(dtype=dtype)
    theirs = outputs_and_gradients(make_network(torso_type), shown)
    assert_alike(outputs_and_gradients(Acceleration(device).network(make_network(torso_type)), shown), theirs)


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("iqn", [False, True])
def test_noisy_network_computes_what_the_plain_one_does(iqn: bool, rows: int) -> None:
    plain, fast = (make_network(noisy=True, iqn=iqn) for _ in range(2))
    Acceleration(CPU).network(fast)
    shown = frames(6)
    assert_alike(
        outputs_and_gradients(fast, shown, rows=rows), outputs_and_gradients(plain, shown, rows=rows)
    )


def test_parameters_and_their_names_stay() -> None:
    network = make_network()
    before = dict(network.named_parameters())
    Acceleration(CPU).network(network)
    assert {name: id(parameter) for name, parameter in network.named_parameters()} == {
        name: id(parameter) for name, parameter in before.items()
    }


@HAS_KERNELS
@pytest.mark.parametrize(
    ("torso_type", "classes"),
    [
        (NatureTorso, {"": FusedNetwork, "torso": StackedTorso}),
        (DopamineTorso, {"": FusedNetwork, "torso": StackedTorso}),
        (DataEfficientTorso, {"": FusedNetwork, "torso": StackedTorso}),
        (ImpalaTorso, {"": QNetwork, "torso": ImpalaTorso, "torso.hidden": nn.Linear}),
    ],
)
def test_each_torso_gets_the_kernels_that_it_should(torso_type: type, classes: dict[str, type]) -> None:
    network = Acceleration(CPU).network(make_network(torso_type))
    assert {name: type(network.get_submodule(name)) for name in classes} == classes


@pytest.mark.parametrize("device", [CPU, GPU])
def test_accelerated_network_is_not_accelerated_again(device: torch.device) -> None:
    network = Acceleration(device).network(make_network(DataEfficientTorso))
    with pytest.raises(ValueError, match="accelerated already"):
        Acceleration(device).network(network)


def double_weight(layer: nn.Linear) -> None:
    """Replace the weight, a parameter, by a tensor that is none."""
    doubled = 2 * layer.weight
    del layer.weight
    layer.weight = doubled


@HAS_KERNELS
@pytest.mark.parametrize(
    "wrap", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm, double_weight]
)
def test_network_with_a_computed_weight_is_not_fused(wrap: Callable[[nn.Module], object]) -> None:
    network = make_network()
    wrap(network.torso.hidden)
    Acceleration(CPU).network(network)
    assert (type(network), type(network.torso)) == (QNetwork, StackedTorso)


@HAS_KERNELS
@pytest.mark.parametrize(("torso_type", "has_any"), [(ImpalaTorso, True), (NatureTorso, False)])
def test_layers_that_stay_pytorchs_are_in_the_log(torso_type: type, has_any: bool) -> None:
    back_end = Acceleration(CPU)
    back_end.network(make_network(torso_type))
    for layer in ("Conv2d", "Linear"):
        said = f"{layer}: PyTorch (no kernel computes this layer by itself)"
        assert (said in back_end.choices()) is has_any


@pytest.mark.parametrize(
    ("dtype", "torso"), [(torch.float32, StackedTorso), (torch.bfloat16, PatchTorso)], ids=["fp32", "bf16"]
)
def test_data_efficient_torso_is_a_stack_in_fp32_and_patches_in_bf16(
    dtype: torch.dtype, torso: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "unit_for", lambda asked: 0)  # on any processor
    network = make_network(DataEfficientTorso)
    network.dtype = dtype
    assert structure.inspect_network(network, CPU, fuse=True).classes["torso"] == (torso, dtype)


def test_bf16_without_kernels_in_bf16_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "instruction_set", lambda: "avx2")
    monkeypatch.setattr(structure, "libraries_lacking", lambda: ())
    for here, reason in {
        ("fp32 vectors",): "on this processor the kernels compute in fp32 only",
        (): "this processor lacks what the kernels need (AVX2, AVX-512 or NEON)",
    }.items():
        monkeypatch.setattr(structure, "units", lambda here=here: here)
        assert structure.why_no_kernels() == reason


def test_kernels_that_cannot_be_loaded_are_reported_with_the_error_of_the_loader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_to_torch(monkeypatch)
    monkeypatch.setattr(structure, "load_error", {"products": "GLIBCXX_3.4.32 not found"}.get)
    assert structure.why_no_kernels() == "the compiled kernels cannot be loaded: GLIBCXX_3.4.32 not found"


@HAS_KERNELS
def test_only_noisy_layers_of_an_implicit_network_get_kernels() -> None:
    network = Acceleration(CPU).network(make_network(noisy=True, iqn=True))
    names = ("", "torso", "torso.hidden", "embedding")
    assert [type(network.get_submodule(name)) for name in names] == [
        ImplicitQuantileNetwork, StackedTorso, FastNoisyLinear, nn.Linear,
    ]  # fmt: skip


@HAS_KERNELS
def test_layers_of_a_fused_network_are_not_in_the_log() -> None:
    back_end = Acceleration(CPU)
    back_end.network(make_network(noisy=True))
    assert "network: fused (one kernel call computes it)" in back_end.choices()
    assert [choice for choice in back_end.choices() if choice.startswith(("torso.", "head."))] == []


@HAS_KERNELS
def test_noisy_layer_that_does_not_fit_is_in_the_log_with_the_reason() -> None:
    back_end = Acceleration(CPU)
    network = back_end.network(make_network(noisy=True, iqn=True))
    assert type(network.get_submodule("head.output")) is NoisyLinear
    assert "head.output: PyTorch (its sizes do not fit)" in back_end.choices()


def test_network_of_btr_computes_what_the_plain_one_does() -> None:
    plain, fast = (make_network(BTR_LN, noisy=True, iqn=True) for _ in range(2))
    Acceleration(CPU).network(fast)
    shown = frames(2)
    assert_alike(outputs_and_gradients(fast, shown), outputs_and_gradients(plain, shown))


@HAS_KERNELS
def test_normalised_layers_of_btr_stay_pytorchs_and_the_log_says_so() -> None:
    back_end = Acceleration(CPU)
    network = back_end.network(make_network(BTR_LN, noisy=True, iqn=True))
    torso = network.torso
    assert type(torso.sections[0][2].first) is SpectralConv2d
    assert [type(layer) for layer in torso.hidden] == [FastNoisyLinear, nn.GroupNorm]
    assert type(torso.sections[1][0][1]) is nn.LayerNorm
    for name in ("SpectralConv2d", "LayerNorm", "GroupNorm"):
        assert f"{name}: PyTorch (no kernel computes this layer by itself)" in back_end.choices()


def test_without_kernels_only_patches_are_taken_and_the_reason_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_to_torch(monkeypatch)
    for torso_type, found in ((NatureTorso, NatureTorso), (DataEfficientTorso, PatchTorso)):
        back_end = Acceleration(CPU)
        network = back_end.network(make_network(torso_type))
        assert (type(network), type(network.torso)) == (QNetwork, found)
        assert "layers: PyTorch (the kernels were not compiled" in "\n".join(back_end.choices())


def of_patches(monkeypatch: pytest.MonkeyPatch, *, dtype: torch.dtype) -> tuple[QNetwork, QNetwork]:
    """Make a plain network, and one whose torso has become a `PatchTorso`."""
    leave_to_torch(monkeypatch)
    plain, fast = (make_network(DataEfficientTorso) for _ in range(2))
    plain.dtype = fast.dtype = dtype
    assert type(Acceleration(CPU).network(fast).torso) is PatchTorso
    return plain, fast


def test_torso_of_patches_computes_the_gradient_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    of_frames = []
    for network in of_patches(monkeypatch, dtype=torch.float32):
        shown = frames(2, dtype=torch.float32).requires_grad_()
        network.q_values(shown).sum().backward()
        of_frames.append(shown.grad)
    torch.testing.assert_close(of_frames[1], of_frames[0])


def test_torso_of_patches_computes_bf16_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, fast = of_patches(monkeypatch, dtype=torch.bfloat16)
    shown = frames(2, dtype=torch.bfloat16)
    torch.testing.assert_close(fast.q_values(shown), plain.q_values(shown))


def test_what_is_compiled_on_a_cpu_stays_pytorchs() -> None:
    network = Acceleration(CPU, compiled=True).network(make_network())
    assert (type(network), type(network.torso)) == (QNetwork, NatureTorso)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("torso_type", "found"),
    [
        (NatureTorso, UnfoldedTorso), (DopamineTorso, UnfoldedTorso), (DataEfficientTorso, UnfoldedTorso),
        (ImpalaTorso, ImpalaTorso),
    ],
)  # fmt: skip
def test_only_stacks_of_convolutions_are_products_on_a_gpu(
    torso_type: type, found: type, compiled: bool
) -> None:
    network = Acceleration(GPU, compiled=compiled).network(make_network(torso_type))
    assert (type(network), type(network.torso)) == (QNetwork, found)


@pytest.mark.parametrize("torso_type", STACKS)
def test_torso_for_a_gpu_computes_frames_of_any_sides(torso_type: type) -> None:
    shown = frames()[:, :, :60, :83]
    plain = torso_type(stack=4, frame_shape=(60, 83))
    fast = Acceleration(GPU).network(QNetwork(copy.deepcopy(plain), LinearHead(plain.num_features, 6)))
    assert type(fast.torso) is UnfoldedTorso
    torch.testing.assert_close(fast.torso(shown), plain(shown), rtol=1e-4, atol=1e-5)


def test_many_frames_are_left_to_pytorch_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Acceleration(GPU).network(make_network())
    convolved = []
    monkeypatch.setattr(torsos, "MAX_UNFOLDED_BATCH", 5)
    for layer in network.torso.convolutions:
        layer.register_forward_hook(lambda *_: convolved.append(True))
    network.torso.encode(frames(5))
    assert convolved == []
    network.torso.encode(frames(6))
    assert len(convolved) == 3


def test_torso_for_a_gpu_computes_in_bf16_what_the_plain_one_does() -> None:
    plain, fast = (make_network() for _ in range(2))
    for network in (plain, fast):
        network.dtype = torch.bfloat16
    Acceleration(GPU).network(fast)
    torch.testing.assert_close(fast.features(frames()), plain.features(frames()), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("overrides", [(), ("learner.target_period_updates=1",)])
def test_assembly_inspects_one_network_once(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    inspected: list[QNetwork] = []
    inspect_network = structure.inspect_network

    def recording(network, device, *, fuse):
        inspected.append(network)
        return inspect_network(network, device, fuse=fuse)

    monkeypatch.setattr(structure, "inspect_network", recording)
    with begun(tiny_spec(*overrides)) as training:
        ticks_of(training, 80)
        assert training.learner.updates
    assert len(inspected) == 1


@HAS_KERNELS
def test_run_lists_how_its_parts_are_computed() -> None:
    with begun(tiny_spec("network.kind=data_efficient", "env.screen_size_pixels=50")) as training:
        choices = training.backend.choices()
    assert "torso: convolution stack (its sizes fit)" in choices
    assert "optimizer: fused step (DeepMindRMSProp)" in choices


def test_copied_network_reads_its_own_weights() -> None:
    network = Acceleration(CPU).network(make_network()).requires_grad_(False)
    before, other = network(frames()), copy.deepcopy(network)
    for weight in other.parameters():
        weight.zero_()
    assert not other(frames()).any()
    assert torch.equal(network(frames()), before)


def learner(*overrides: str) -> Learner:
    spec = tiny_spec(*overrides)
    with begun(spec) as training:
        return build_learner(spec, training.envs.info, CPU)


def unwritten_at_each_step(of: Learner, monkeypatch: pytest.MonkeyPatch, updates: int) -> list[int]:
    found: list[int] = []
    clip = of._clip_gradients

    def recording() -> Tensor:
        found.append(len(of._unwritten or []))
        return clip()

    monkeypatch.setattr(of, "_clip_gradients", recording)
    spec = tiny_spec()
    with begun(spec) as training:
        ticks_of(training, 70)
        training.replay.prepare(0)
        for _ in range(updates):
            of.update(training.replay.sample())
    return found


@HAS_KERNELS
@pytest.mark.parametrize("optimizer", ["deepmind_rmsprop", "adam"])
def test_largest_gradient_is_not_written_while_the_learner_learns(
    optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unwritten_at_each_step(learner(f"optimizer.kind={optimizer}"), monkeypatch, 3) == [1, 1, 1]


def assembled(*overrides: str) -> list[str]:
    with begun(tiny_spec(*overrides)) as training:
        return training.backend.choices()


@HAS_KERNELS
@pytest.mark.parametrize(("hidden_units", "is_listed"), [(64, True), (48, False)])
def test_largest_gradient_is_listed_as_not_written_only_where_its_sizes_fit(
    hidden_units: int, is_listed: bool
) -> None:
    reason = "the optimizer computes it block by block in minibatches of up to 128"
    said = f"largest gradient: not written ({reason})"
    assert (said in assembled(f"network.hidden_units={hidden_units}")) is is_listed


def test_step_without_kernels_is_listed_as_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_to_torch(monkeypatch)
    assert "optimizer: PyTorch (DeepMindRMSProp)" in assembled()


@HAS_KERNELS
@pytest.mark.parametrize("override", ["learner.accumulate=4", "optimizer.kind=torch_rmsprop"])
def test_gradients_of_other_learners_are_written(override: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unwritten_at_each_step(learner(override), monkeypatch, 1) == [0]


def test_outside_of_an_update_gradients_are_pytorchs() -> None:
    network = learner().online
    network(frames()[:, :, :36, :36]).sum().backward()
    assert [name for name, weight in network.named_parameters() if weight.grad is None] == []


class Doubled(NatureTorso):
    def encode(self, frames: Tensor) -> Tensor:
        return 2 * super().encode(frames)


class Largest(DuelingHead):
    def forward(self, features: Tensor) -> Tensor:
        outputs = super().forward(features)
        return outputs - outputs.amax(dim=1, keepdim=True)


def test_subclass_computes_by_its_own_methods() -> None:
    made = []
    for is_fast in (False, True):
        torso = Doubled(stack=4, frame_shape=(84, 84), streams=2)
        network = QNetwork(torso, Largest(torso.num_features, 6))
        initialize(network, init="he_uniform", generator=stream())
        made.append(Acceleration(CPU).network(network) if is_fast else network)
    assert (type(made[1]), type(made[1].torso), type(made[1].head)) == (QNetwork, Doubled, Largest)
    torch.testing.assert_close(made[1](frames()), made[0](frames()), rtol=1e-4, atol=1e-5)
