"""Sizes of torsos, by hand."""

import pytest
import torch
from torch import nn

from atari_dqn.agent.heads import SharedDuelingHead
from atari_dqn.agent.torsos import DataEfficientTorso, DopamineTorso, ImpalaTorso


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_data_efficient_torso_encodes_576_numbers_and_has_256_units() -> None:
    torso = DataEfficientTorso(stack=4, frame_shape=(84, 84))
    assert (torso.num_encoded, torso.num_features) == (576, 256)
    assert count(torso) == 32 * (4 * 25 + 1) + 64 * (32 * 25 + 1) + 256 * 577


@pytest.mark.parametrize("width", [1, 4])
def test_impala_torso_encodes_11_by_11_pixels_of_32_channels_times_its_width(width: int) -> None:
    torso = ImpalaTorso(stack=4, frame_shape=(84, 84), width=width)
    assert (torso.num_encoded, torso.num_features) == (32 * width * 121, 256)
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


def test_dopamine_torso_encodes_11_by_11_pixels_of_64_channels() -> None:
    torso = DopamineTorso(stack=4, frame_shape=(84, 84))
    assert (torso.num_encoded, torso.num_features) == (7_744, 512)
    assert torso(torch.zeros(1, 4, 84, 84)).shape == (1, 512)


def test_dopamine_torso_puts_the_odd_zero_after_the_pixels() -> None:
    # 84 → 21 with 2 + 2 zeros → 11 with 1 + 2 zeros → 11 with 1 + 1; kernels of ones count what they see
    torso = DopamineTorso(stack=1, frame_shape=(84, 84))
    for convolution in torso.convolutions:
        nn.init.ones_(convolution.weight)
        nn.init.zeros_(convolution.bias)
        nn.init.zeros_(convolution.weight[1:])
        nn.init.zeros_(convolution.weight[:, 1:])
    seen = torso.encode(torch.full((1, 1, 84, 84), 255.0)).view(64, 11, 11)[0]
    first = torch.tensor(
        [6.0, *[8.0] * 19, 6.0]
    )  # a side of what the first puts out is the root of its counts
    padded = torch.cat([torch.zeros(1), first, torch.zeros(2)])
    second = torch.stack([padded[2 * place : 2 * place + 4].sum() for place in range(11)])
    padded = torch.cat([torch.zeros(1), second, torch.zeros(1)])
    third = torch.stack([padded[place : place + 3].sum() for place in range(11)])
    assert torch.allclose(seen, torch.outer(third, third))


def test_both_parts_of_a_shared_dueling_head_see_every_feature() -> None:
    head = SharedDuelingHead(2, 2)
    with torch.no_grad():
        head.value.weight.copy_(torch.tensor([[1.0, 10.0]]))
        head.advantage.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        head.value.bias.zero_()
        head.advantage.bias.zero_()
    # 1·2 + 10·1 = 12; advantages 2 and 3 about their mean 2.5
    assert head(torch.tensor([[2.0, 1.0]])).flatten().tolist() == [11.5, 12.5]
