"""Noisy layers: what they compute, what they draw, and where they are silent."""

import math

import pytest
import torch
from parts import frames, stream
from torch.nn import functional as F

from atari_dqn.agent.heads import DuelingHead, LinearHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import NoisyLinear, draw_noise, sampled_noise
from atari_dqn.agent.torsos import NatureTorso


def noisy(*shape: int, sigma: float = 0.5) -> NoisyLinear:
    layer = NoisyLinear(*shape, sigma=sigma)
    layer.initialize(stream())
    return layer


def network(*, dueling: bool = False) -> QNetwork:
    def layer(inputs: int, outputs: int) -> NoisyLinear:
        return NoisyLinear(inputs, outputs, sigma=0.5)

    head = DuelingHead if dueling else LinearHead
    torso = NatureTorso(stack=4, frame_shape=(36, 36), streams=head.streams, layer=layer)
    made = QNetwork(torso, head(torso.num_features, 3, layer=layer), precision="fp32")
    initialize(made, init="he_uniform", generator=stream(seed=1))
    return made


@pytest.mark.parametrize("rows", [1, 2, 6])
@pytest.mark.parametrize("shape", [(7, 5), (64, 33)])
def test_output_and_gradients_are_those_of_the_noisy_weights_written_out(
    rows: int, shape: tuple[int, int]
) -> None:
    layer, x, upstream = (
        noisy(*shape),
        torch.randn(6, shape[0], generator=stream()),
        torch.randn(6, shape[1], generator=stream()),
    )
    weights = list(layer.parameters())
    draw_noise([layer], stream(), rows)
    assert layer.noise is not None
    of_inputs, of_outputs = layer.noise
    parts = []
    for place, part in enumerate(x.chunk(rows)):
        weight = layer.weight + layer.weight_sigma * torch.outer(of_outputs[place], of_inputs[place])
        parts.append(F.linear(part, weight, layer.bias + layer.bias_sigma * of_outputs[place]))
    expected = torch.cat(parts)
    torch.testing.assert_close(layer(x), expected)
    ours, theirs = (torch.autograd.grad(y, weights, upstream) for y in (layer(x), expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_drawn_numbers_are_signed_roots_of_normal_ones() -> None:
    layer = noisy(50_000, 3)
    draw_noise([layer], stream(), 1)
    assert layer.noise is not None
    back = layer.noise[0].abs().square() * layer.noise[0].sign()
    assert back.mean().item() == pytest.approx(0.0, abs=0.02)
    assert back.std().item() == pytest.approx(1.0, abs=0.02)


def test_weights_begin_within_one_over_the_root_of_the_inputs_and_noise_at_half_of_that() -> None:
    layer = noisy(400, 50)
    assert 0.95 / 20 < layer.weight.abs().max() <= 1 / 20
    assert set(layer.weight_sigma.flatten().tolist()) == {torch.tensor(0.5 / math.sqrt(400)).item()}
    assert set(layer.bias_sigma.tolist()) == {torch.tensor(0.5 / math.sqrt(400)).item()}


def test_every_fully_connected_layer_is_noisy_and_no_convolution() -> None:
    names = {name for name, layer in network(dueling=True).named_modules() if isinstance(layer, NoisyLinear)}
    assert names == {"torso.hidden", "head.value", "head.advantage"}


def test_without_a_generator_the_network_is_its_mean_and_repeats() -> None:
    made = network()
    mean = made(frames(2))
    made(frames(2), stream())
    assert torch.equal(made(frames(2)), mean)


def test_with_a_generator_each_call_has_fresh_noise() -> None:
    made, generator = network(), stream()
    assert not torch.equal(made(frames(2), generator), made(frames(2), generator))


def test_the_same_stream_gives_the_same_noise() -> None:
    made = network()
    assert torch.equal(made(frames(2), stream()), made(frames(2), stream()))


def test_envs_act_under_noise_of_their_own() -> None:
    same = frames(1).expand(3, -1, -1, -1)
    values = network()(same, stream())
    assert len({tuple(row) for row in values.tolist()}) == 3


def test_minibatch_is_predicted_under_one_noise() -> None:
    same = frames(1).expand(3, -1, -1, -1)
    values = network().distribution(same, stream()).q_values()
    torch.testing.assert_close(values[1:], values[:1].expand(2, -1), rtol=1e-5, atol=1e-6)


@pytest.mark.fault("W05")
@pytest.mark.parametrize("dueling", [False, True])
def test_gradient_flows_to_every_mean_and_every_noise(dueling: bool) -> None:
    made = network(dueling=dueling)
    made.distribution(frames(16), stream()).outputs.square().sum().backward()
    missing = [name for name, w in made.named_parameters() if w.grad is None or not w.grad.any()]
    assert missing == []


def test_noise_is_gone_after_an_error_inside_its_context() -> None:
    layer = noisy(3, 2)
    with pytest.raises(RuntimeError, match="within"), sampled_noise(layer, stream(), 1):
        raise RuntimeError("within")
    assert layer.noise is None
