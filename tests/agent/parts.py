"""Helpers of the agent tests: networks of the real kind on small frames, minibatches, gradients."""

import torch
from torch import Tensor

from atari_dqn.agent import rules
from atari_dqn.agent.heads import DuelingHead, LinearHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.losses import ScalarLoss, TDLoss
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.targets import TargetRule, dqn_target
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.minibatch import Minibatch

SIDE = 36
"""The smallest frame the convolutions take; one pixel is left for the hidden layer."""


def make_network(
    *, side: int = SIDE, actions: int = 3, init: str = "he_uniform", precision: str = "fp32", seed: int = 0,
    head: type[LinearHead | DuelingHead] = LinearHead,
) -> QNetwork:  # fmt: skip
    torso = NatureTorso(stack=4, frame_shape=(side, side), streams=head.streams)
    network = QNetwork(torso, head(torso.num_features, actions), precision=precision)
    initialize(network, init=init, generator=torch.Generator().manual_seed(seed))
    return network


def make_learner(
    *, target_rule: TargetRule = dqn_target, optimizer=None, loss: str = "huber", reduction: str = "sum",
    accumulate: int = 1, max_grad_norm: float = float("inf"), target_period_updates: int = 10_000,
    lr: float = 0.01, device: torch.device | None = None,
) -> Learner:  # fmt: skip
    online = make_network(seed=1).to(device)
    return Learner(
        online=online,
        target=make_network(seed=2).to(device),
        optimizer=optimizer(online.parameters()) if optimizer else torch.optim.SGD(online.parameters(), lr),
        loss=TDLoss(target_rule=target_rule, distribution_loss=ScalarLoss(getattr(rules, loss))),
        reduction=reduction,
        accumulate=accumulate,
        max_grad_norm=max_grad_norm,
        target_period_updates=target_period_updates,
        generator=stream(device),
    )


def stream(device: torch.device | None = None, *, seed: int = 0) -> torch.Generator:
    return torch.Generator(device=device or "cpu").manual_seed(seed)


def frames(count: int, *, seed: int = 0, side: int = SIDE) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 4, side, side), generator=generator, dtype=torch.uint8)


def make_batch(size: int = 4, **columns: Tensor) -> Minibatch:
    plain = {
        "s_tm1": frames(size, seed=1),
        "a_tm1": torch.arange(size) % 3,
        "r_t": torch.linspace(-1, 1, size),
        "discount_t": torch.full((size,), 0.99),
        "s_t": frames(size, seed=2),
        "weight": torch.ones(size),
        "index": torch.arange(size),
    }
    return Minibatch(**(plain | columns))


def movement(learner: Learner, batch: Minibatch) -> Tensor:
    """Return by how much one update with plain gradient descent moves all weights."""
    before = flat(learner)
    learner.update(batch)
    return flat(learner) - before


def flat(learner: Learner) -> Tensor:
    return torch.cat([parameter.detach().flatten().clone() for parameter in learner.online.parameters()])
