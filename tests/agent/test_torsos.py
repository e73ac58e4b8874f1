"""Sizes of torsos, by hand."""

import pytest
import torch
from torch import nn

from atari_dqn.agent.heads import SharedDuelingHead
from atari_dqn.agent.impala import AdaptiveMaxPool, ImpalaTorso
from atari_dqn.agent.layer_norm import NormalizedNatureTorso
from atari_dqn.agent.torsos import DataEfficientTorso, DopamineTorso, NatureTorso


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


@pytest.mark.parametrize(("side", "size"), [(11, 6), (5, 2), (7, 7), (84, 5)])
def test_adaptive_pooling_equals_pytorchs(side: int, size: int) -> None:
    x = torch.randn(2, 3, side, side + 1, generator=torch.Generator().manual_seed(0))
    assert torch.equal(AdaptiveMaxPool(size)(x), nn.AdaptiveMaxPool2d(size)(x))


def test_torso_of_btr_encodes_2304_numbers() -> None:
    torso = ImpalaTorso(
        stack=4, frame_shape=(84, 84), streams=2, width=2, pool_size=6, spectral_norm=True, hidden_units=512
    )
    assert (torso.num_encoded, torso.num_features) == (2_304, 1_024)
    assert torso(torch.zeros(1, 4, 84, 84)).shape == (1, 1_024)


def test_each_stream_of_the_hidden_layer_is_normalised_alone() -> None:
    torso = ImpalaTorso(stack=4, frame_shape=(36, 36), streams=2, layer_norm=True, hidden_units=32)
    x = torch.randn(3, torso.num_encoded, generator=torch.Generator().manual_seed(0))
    hidden = torso.hidden(x).view(3, 2, 32)
    torch.testing.assert_close(hidden.mean(dim=2), torch.zeros(3, 2), rtol=0, atol=1e-5)
    torch.testing.assert_close(hidden.var(dim=2, unbiased=False), torch.ones(3, 2), rtol=0, atol=1e-3)


def test_layer_normalisation_follows_the_first_convolution_of_each_section() -> None:
    torso = ImpalaTorso(stack=4, frame_shape=(36, 36), layer_norm=True)
    x, heights = torch.rand(2, 4, 36, 36), []
    for section in torso.sections:
        stem = section[0](x)
        heights.append(tuple(stem.shape[1:]))
        assert stem.mean(dim=(1, 2, 3)).abs().max() < 1e-5
        assert (stem.var(dim=(1, 2, 3), unbiased=False) - 1).abs().max() < 1e-3
        x = section(x)
    assert heights == [(16, 36, 36), (32, 18, 18), (32, 9, 9)]


def test_normalised_nature_torso_normalises_the_channels_of_each_pixel() -> None:
    torso = NormalizedNatureTorso(stack=4, frame_shape=(84, 84))
    x = torso.convolutions[0](torch.rand(2, 4, 84, 84))
    normal = torso.norms[0](x)
    assert normal.shape == (2, 32, 20, 20)
    mean, variance = x.double().mean(dim=1, keepdim=True), x.double().var(dim=1, unbiased=False, keepdim=True)
    expected = ((x - mean) / (variance + 1e-5).sqrt()).float()
    torch.testing.assert_close(normal, expected, rtol=1e-5, atol=1e-5)


def test_normalised_nature_torso_has_the_weights_of_natures_and_two_for_each_channel_and_unit() -> None:
    torso, plain = (kind(stack=4, frame_shape=(84, 84)) for kind in (NormalizedNatureTorso, NatureTorso))
    assert count(torso) == count(plain) + 2 * (32 + 64 + 64) + 2 * 512
    assert torso(torch.zeros(3, 4, 84, 84)).shape == (3, 512)
