"""Steps of the fast learner by losses with penalties, several passes, own gradients or frozen weights."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.optim import Optimizer

from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.losses import LOSS_METRICS, LossOutput
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.optimizers import adam, deepmind_rmsprop
from atari_dqn.agent.random_draws import Rng
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.fast.acceleration import Acceleration
from atari_dqn.fast.cpu.library import units

pytestmark = pytest.mark.skipif(not units(), reason="no kernels of products on this machine")

ADAM = partial(adam, learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-3)
RMSPROP = partial(
    deepmind_rmsprop, learning_rate=0.01, epsilon=0.1, gradient_decay=0.95, squared_gradient_decay=0.95
)


class FramesBatch:
    """A minibatch of frames alone."""

    def __init__(self) -> None:
        self.frames = torch.arange(3 * 4 * 36 * 36).remainder(251).to(torch.uint8).view(3, 4, 36, 36)

    def split(self, parts: int) -> list["FramesBatch"]:
        assert parts == 1
        return [self]


def squared(batch: FramesBatch, online: QNetwork) -> Tensor:
    return online.distribution(batch.frames).outputs.flatten(1).square().sum(dim=1)


def with_penalty(batch: FramesBatch, online: QNetwork) -> Tensor:
    return squared(batch, online) + sum(weight.square().sum() for weight in online.parameters())


def with_two_passes(batch: FramesBatch, online: QNetwork) -> Tensor:
    outputs = online.distribution(batch.frames.flip(3)).outputs
    return squared(batch, online) + outputs.flatten(1).sum(dim=1)


def over_gradient_norm(batch: FramesBatch, online: QNetwork) -> Tensor:
    values = squared(batch, online)
    weights = [online.torso.hidden.weight, online.head.output.weight]
    gradients = torch.autograd.grad(values.mean(), weights, retain_graph=True)
    return values / sum(gradient.norm() for gradient in gradients)


def over_norm_at_the_head(batch: FramesBatch, online: QNetwork) -> Tensor:
    values = squared(batch, online)
    (gradient,) = torch.autograd.grad(values.mean(), [online.head.output.weight], retain_graph=True)
    return values / gradient.norm()


def with_frozen_torso(batch: FramesBatch, online: QNetwork) -> Tensor:
    online.torso.requires_grad_(False)
    return squared(batch, online)


def with_torso_frozen_after_the_pass(batch: FramesBatch, online: QNetwork) -> Tensor:
    values = squared(batch, online.requires_grad_(True))
    online.torso.requires_grad_(False)
    return values


def with_torso_frozen_in_the_pass(batch: FramesBatch, online: QNetwork) -> Tensor:
    values = with_frozen_torso(batch, online)
    online.torso.requires_grad_(True)
    return values


LOSSES = [
    squared, with_penalty, with_two_passes, over_gradient_norm, over_norm_at_the_head, with_frozen_torso,
    with_torso_frozen_after_the_pass, with_torso_frozen_in_the_pass,
]  # fmt: skip


def updated(compute: Callable[..., Tensor], make: Callable[..., Optimizer], *, is_fast: bool) -> list[Tensor]:
    """Take two gradient steps; return the weights and the gradient's last norm."""

    def loss(batch: FramesBatch, online: QNetwork, target: QNetwork, rng: Rng) -> LossOutput:
        values, zeros = compute(batch, online), torch.zeros(3)
        return LossOutput(loss=values, priorities=zeros, metrics=dict.fromkeys(LOSS_METRICS, zeros))

    torso = NatureTorso(stack=4, frame_shape=(36, 36), hidden_units=64)
    network = QNetwork(torso, LinearHead(torso.num_features, 6))
    initialize(network, init="he_uniform", generator=torch.Generator().manual_seed(0))
    optimizer = make(list(network.parameters()))
    make_learner: Callable[..., Learner] = Learner
    if is_fast:
        acceleration = Acceleration(torch.device("cpu"))
        network, optimizer = acceleration.network(network), acceleration.optimizer(optimizer)
        make_learner = acceleration.learner
    learner = make_learner(
        online=network, target=network, optimizer=optimizer, loss=loss, reduction="mean", accumulate=1,
        max_grad_norm=1.0, target_period_updates=1, generator=torch.Generator(),
    )  # fmt: skip
    norms = [learner.gradient_step(FramesBatch()).metrics["grad_norm"] for _ in range(2)]
    return [*(weight.detach() for weight in network.parameters()), norms[-1]]


@pytest.mark.parametrize("make", [ADAM, RMSPROP], ids=["adam", "rmsprop"])
@pytest.mark.parametrize("compute", LOSSES)
def test_fast_learner_steps_as_the_plain_one_does(
    compute: Callable[..., Tensor], make: Callable[..., Optimizer]
) -> None:
    fast, plain = (updated(compute, make, is_fast=is_fast) for is_fast in (True, False))
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
