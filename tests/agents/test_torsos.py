"""Sizes of what sees, by hand."""

import pytest
import torch
from torch import nn

from atari_dqn.agents.torsos import DataEfficientTorso, ImpalaTorso


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_data_efficient_torso_sees_576_numbers_and_has_256_units() -> None:
    torso = DataEfficientTorso(stack=4, frame_shape=(84, 84))
    assert (torso.num_seen, torso.num_features) == (576, 256)
    assert count(torso) == 32 * (4 * 25 + 1) + 64 * (32 * 25 + 1) + 256 * 577


@pytest.mark.parametrize("width", [1, 4])
def test_impala_torso_sees_11_by_11_pixels_of_32_channels_times_its_width(width: int) -> None:
    torso = ImpalaTorso(stack=4, frame_shape=(84, 84), width=width)
    assert (torso.num_seen, torso.num_features) == (32 * width * 121, 256)
    assert torso(torch.zeros(1, 4, 84, 84)).shape == (1, 256)


def test_impala_torso_has_fifteen_convolutions() -> None:
    torso = ImpalaTorso(stack=4, frame_shape=(36, 36))
    assert sum(isinstance(layer, nn.Conv2d) for layer in torso.modules()) == 15


def test_residual_block_whose_last_convolution_is_zero_changes_nothing() -> None:
    block = ImpalaTorso(stack=4, frame_shape=(36, 36)).sections[0][2]
    nn.init.zeros_(block.second.weight)
    nn.init.zeros_(block.second.bias)
    x = torch.randn(1, 16, 9, 9)
    assert torch.equal(block(x), x)
