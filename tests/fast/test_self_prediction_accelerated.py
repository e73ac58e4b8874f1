"""Networks with self-prediction use kernels of layers and stacks, and compute what they do without any."""

import pytest
import torch
from torch import Tensor, nn

from atari_dqn.agent.distributions import ScalarValue
from atari_dqn.agent.heads import SharedDuelingHead
from atari_dqn.agent.impala import ImpalaTorso
from atari_dqn.agent.init import initialize
from atari_dqn.agent.optimizers import adam
from atari_dqn.agent.self_prediction import SelfPredictiveNetwork, cosine_loss
from atari_dqn.agent.torsos import DataEfficientTorso, DopamineTorso
from atari_dqn.fast.acceleration import Acceleration
from atari_dqn.fast.fused_network import FusedNetwork

CPU = torch.device("cpu")
ADAM = {"learning_rate": 0.01, "epsilon": 1e-3, "beta1": 0.9, "beta2": 0.999}


def make_network(torso_type: type) -> SelfPredictiveNetwork:
    torso = torso_type(stack=4, frame_shape=(84, 84), hidden_units=128)
    network = SelfPredictiveNetwork(
        torso, SharedDuelingHead(torso.num_features, 6), ScalarValue(), num_actions=6
    )
    initialize(network, init="he_uniform", generator=torch.Generator().manual_seed(1))
    return network


def gradients(network: SelfPredictiveNetwork) -> list[Tensor]:
    """Return the gradients of a loss that uses q-values and predictions."""
    generator = torch.Generator().manual_seed(2)
    stacks = torch.randint(0, 256, (4, 4, 84, 84), generator=generator, dtype=torch.uint8)
    predicted = network.predicted(stacks, torch.tensor([[0, 5], [1, 2], [3, 3], [2, 0]]))
    goal = torch.randn(predicted.shape, generator=generator)
    loss = cosine_loss(predicted, goal, torch.ones(4, 2, dtype=torch.bool)).sum()
    (loss + network(stacks).square().sum()).backward()
    return [weight.grad for weight in network.parameters() if weight.grad is not None]


@pytest.mark.parametrize("torso_type", [DataEfficientTorso, DopamineTorso, ImpalaTorso])
def test_gradients_are_those_of_plain_pytorch(torso_type: type) -> None:
    fast = Acceleration(CPU).network(make_network(torso_type))
    for ours, plain in zip(gradients(fast), gradients(make_network(torso_type)), strict=True):
        assert (ours - plain).abs().max() <= 1e-4 * plain.abs().max()


def test_network_is_not_fused_and_the_log_says_so() -> None:
    backend = Acceleration(CPU)
    network = backend.network(make_network(DataEfficientTorso))
    assert not isinstance(network, FusedNetwork)
    (found,) = [choice for choice in backend.choices() if choice.startswith(("network:", "layers:"))]
    assert "SelfPredictiveNetwork" in found or found.startswith("layers:")


def test_decaying_weights_are_stepped_by_pytorch_and_the_log_says_so() -> None:
    backend = Acceleration(CPU)
    optimizer = adam([nn.Parameter(torch.ones(2, 2))], weight_decay=0.1, **ADAM)
    before = type(optimizer)
    assert type(backend.optimizer(optimizer)) is before
    assert "PyTorch" in backend.choices()[-1]
