"""Where no kernels are, PyTorch computes; which there are is told."""

import shutil
from pathlib import Path

import pytest
import torch
from without_kernels import leave_to_torch

from atari_dqn.agents.heads import LinearHead
from atari_dqn.agents.networks import QNetwork, initialize
from atari_dqn.agents.torsos import ConvolutionalTorso, DopamineTorso, NatureTorso
from atari_dqn.errors import UserError
from atari_dqn.kernels import library as found
from atari_dqn.kernels import products


def test_missing_library_is_none() -> None:
    assert found.library.__wrapped__("of_another_name") is None


@pytest.mark.skipif(found.library("portable") is None, reason="no kernels of our own on this machine")
def test_library_of_other_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in found.FOLDER.glob("*portable*"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr(found, "FOLDER", tmp_path)
    assert found.library.__wrapped__("portable") is not None
    (tmp_path / "optimizer.cpp").write_text("// changed since")
    with pytest.raises(UserError, match="install again"):
        found.library.__wrapped__("portable")


def test_without_a_library_there_are_no_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "library", lambda name: None)
    monkeypatch.setattr(found, "units", found.units.__wrapped__)
    assert found.kernels_here() == ()


@pytest.mark.parametrize(
    ("here", "dtype", "unit"),
    [
        (("fp32 vectors", "bf16 vectors", "bf16 tiles"), torch.bfloat16, 2),
        (("fp32 vectors", "bf16 vectors"), torch.bfloat16, 1),
        (("fp32 vectors", "bf16 tiles"), torch.float32, 0),
        (("fp32 vectors",), torch.bfloat16, None),
        (("fp32 vectors",), torch.float64, None),
    ],
)
def test_quickest_unit_of_a_format_is_chosen(
    here: tuple[str, ...], dtype: torch.dtype, unit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "units", lambda: here)
    assert found.unit_for.__wrapped__(dtype) == unit


def q_and_gradients(network: QNetwork, frames: torch.Tensor) -> list[torch.Tensor]:
    network.zero_grad()
    q_values = network(frames)
    q_values.square().sum().backward()
    return [q_values.detach(), *(weight.grad for weight in network.parameters() if weight.grad is not None)]


@pytest.mark.skipif(products.unit_for(torch.float32) is None, reason="no kernels of our own on this machine")
@pytest.mark.parametrize("torso", [NatureTorso, DopamineTorso])
def test_network_is_the_same_with_kernels_and_without(
    torso: type[ConvolutionalTorso], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = QNetwork(torso(stack=4, frame_shape=(84, 84)), LinearHead(512, 6), precision="fp32")
    initialize(network, init="he_uniform", generator=torch.Generator().manual_seed(0))
    frames = torch.randint(0, 256, (9, 4, 84, 84), dtype=torch.uint8)
    ours = q_and_gradients(network, frames)
    leave_to_torch(monkeypatch)
    for one, other in zip(ours, q_and_gradients(network, frames), strict=True):
        assert (one - other).abs().max() <= 1e-5 * other.abs().max()
